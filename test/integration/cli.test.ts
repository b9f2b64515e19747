import assert from "node:assert/strict";
import { appendFile, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Blame } from "../../src/journal/blame.ts";
import type { Plan } from "../../src/server/local-api.ts";
import { CommandBench, withEngine } from "../support/command.ts";
import { CriServer } from "../support/cri-server.ts";
import { containerView, podView } from "../support/pod-views.ts";

test("ps lists pods as a table and as JSON", async () => {
  await withEngine({}, async (bench, engine) => {
    assert.match((await bench.run(["ps"])).stderr, /no pods/);
    engine.views.set("uid-web", podView({}));
    assert.match((await bench.run(["ps"])).stdout, /^NAMESPACE +NAME +READY[^\n]*\ndefault +web +1\/1 +Running/);
    const { pods } = JSON.parse((await bench.run(["ps", "-o", "json"])).stdout) as { pods: { uid: string }[] };
    assert.deepEqual(
      pods.map(({ uid }) => uid),
      ["uid-web"],
    );
  });
});

test("why and timeline explain a pod, as text and as JSON", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    await bench.run(["run", "--detach", path]);
    const why = await bench.run(["why", "web"]);
    assert.equal(why.exitCode, 0, why.stderr);
    assert.match(why.stdout, /default\/web[^]*container app[^]*because +pod web was added/);
    const timeline = await bench.run(["timeline", "default/web", "--json"]);
    const { lines } = JSON.parse(timeline.stdout) as { lines: { step: { what: string } }[] };
    assert.deepEqual(
      lines.map((line) => line.step.what),
      ["PodAdded", "StartContainer"],
    );
    const unknown = await bench.run(["why", "wep"]);
    assert.equal(unknown.exitCode, 2);
    assert.match(unknown.stderr, /pod "wep" not found\n.*did you mean web\?/);
  });
});

test("blame shows where the time of a start-up goes, as text and as JSON, also without an engine", async () => {
  await withEngine({}, async (bench, engine, path) => {
    await bench.run(["run", "--detach", path]);
    const blame = await bench.run(["blame", "web"]);
    assert.equal(blame.exitCode, 0, blame.stderr);
    assert.match(blame.stdout, /^default\/web [^]*not ready yet, so far[^]*12 ms +app +start\n[^]*app +not ready yet/);
    engine.record({
      kind: "observation",
      what: "ContainerStateChanged",
      message: "container app is running and ready",
      pod: engine.pod("web"),
      container: "app",
      data: { ready: true },
    });
    const { outcome, phases } = JSON.parse((await bench.run(["blame", "--json", "web"])).stdout) as Blame;
    assert.equal(outcome, "ready");
    assert.deepEqual(
      phases.filter(({ kind }) => kind !== "gap").map(({ kind, container }) => `${kind} ${container}`),
      ["start app", "ready app"],
    );
    assert.equal((await bench.run(["blame", "wep"])).exitCode, 2);
  });
  await using bench = await CommandBench.open();
  const entry = { kind: "input", what: "PodAdded", message: "m", pod: { namespace: "a", name: "old", uid: "u" } };
  await mkdir(bench.layout.journal, { recursive: true });
  await writeFile(join(bench.layout.journal, "journal-1.jsonl"), `${JSON.stringify({ ...entry, seq: 1, time: 5 })}\n`);
  const recorded = await bench.run(["blame", "old"]);
  assert.match(recorded.stdout, /^a\/old [^]*so far 0 ms/);
  assert.match(recorded.stderr, /no kubelet runs/);
});

test("plan shows what would be done, with manifests also what they would change, and does nothing", async () => {
  await withEngine({}, async (bench, engine, path) => {
    assert.match((await bench.run(["plan"])).stderr, /no pods/);
    engine.views.set("uid-db", podView({ name: "db" }));
    const idle = await bench.run(["plan"]);
    assert.deepEqual(
      [idle.exitCode, idle.stdout],
      [0, "default/db  uid uid-db\n  nothing: everything is as desired\n"],
    );
    const added = await bench.run(["plan", path]);
    assert.match(
      added.stdout,
      /default\/web  would be added\n  start container app, attempt 0\n    because container app/,
    );
    const { pods } = JSON.parse((await bench.run(["plan", "--json", path])).stdout) as Plan;
    assert.deepEqual(
      pods.map(({ name, change }) => `${name} ${change}`),
      ["db undefined", "web added"],
    );
    const broken = await bench.run(["plan", "-"], "apiVersion: v1\nkind: Pod\nmetadata: { name: broken }\nspec: {}\n");
    assert.deepEqual([broken.exitCode, broken.stdout], [2, ""]);
    assert.deepEqual(engine.applied, []);
  });
});

test("stop stops the pods it can and reports the others", async () => {
  await withEngine({}, async (bench, engine) => {
    engine.views.set("uid-web", podView({}));
    const end = await bench.run(["stop", "--grace", "3", "--json", "nobody", "web"]);
    assert.equal(end.exitCode, 2);
    assert.match(end.stderr, /pod "nobody" not found/);
    assert.deepEqual(JSON.parse(end.stdout), { stopped: [{ namespace: "default", name: "web", uid: "uid-web" }] });
    assert.deepEqual(engine.stops, [{ uid: "uid-web", graceSeconds: 3 }]);
  });
});

/** Of a time long ago. */
const line = (text: string, stream = "stdout"): string => `2025-11-20T14:00:00.000000001Z ${stream} F ${text}\n`;

test("logs prints both streams separately, the tail, and timestamps", async () => {
  await withEngine({}, async (bench, engine) => {
    const logPath = join(bench.layout.stateDirectory, "0.log");
    await writeFile(logPath, line("one") + line("two", "stderr") + line("three"));
    engine.views.set("uid-web", podView({ containers: [containerView({ logPath })] }));
    assert.deepEqual(await bench.run(["logs", "web"]), { exitCode: 0, stdout: "one\nthree\n", stderr: "two\n" });
    assert.equal((await bench.run(["logs", "--tail", "1", "web", "app"])).stdout, "three\n");
    assert.match((await bench.run(["logs", "--timestamps", "web"])).stdout, /^2025-11-20T14:00:00\.000000001Z one\n/);
    await appendFile(logPath, line("now").replace("2025-11-20T14:00:00.000000001Z", new Date().toISOString()));
    assert.equal((await bench.run(["logs", "--since", "10m", "web"])).stdout, "now\n");
    const previous = await bench.run(["logs", "--previous", "web"]);
    assert.equal(previous.exitCode, 2);
    assert.match(previous.stderr, /container app has no previous instance/);
    assert.match((await bench.run(["logs", "web", "ap"])).stderr, /no container "ap"\n.*did you mean app\?/);
  });
});

test("logs -f follows over rotation and ends with the pod", async () => {
  await withEngine({}, async (bench, engine) => {
    const directory = join(bench.layout.stateDirectory, "app");
    await mkdir(directory);
    const logPath = join(directory, "0.log");
    await writeFile(logPath, line("one"));
    engine.views.set("uid-web", podView({ containers: [containerView({ logPath })] }));
    const command = bench.start(["logs", "-f", "web"]);
    await command.prints(/one/);
    await rename(logPath, `${logPath}.20261120-140000`);
    await writeFile(logPath, line("two"));
    await command.prints(/two/);
    await writeFile(join(directory, "1.log"), line("three"));
    await command.prints(/three/);
    await appendFile(join(directory, "1.log"), line("four"));
    const logs = containerView({ logPath: join(directory, "1.log") });
    engine.views.set("uid-web", podView({ containers: [logs] }));
    assert.equal(
      (await bench.run(["logs", "--previous", "web"])).stdout,
      "one\ntwo\n",
      "the log of an instance that is gone, with what was rotated away",
    );
    engine.views.delete("uid-web");
    assert.deepEqual(await command.ended, { exitCode: 0, stdout: "one\ntwo\nthree\nfour\n", stderr: "" });
  });
});

test("debug waits for a container that its pod does not show yet, and reports an end only for a pod that has ended", async () => {
  await withEngine({}, async (bench, engine, path) => {
    await bench.run(["run", "--detach", path]);
    const { uid } = engine.pod("web");
    const logPath = join(bench.layout.stateDirectory, "debugger-0.log");
    await writeFile(logPath, line("hello"));
    engine.debugged = { afterMs: 500, view: { state: "terminated", exitCode: 0, reason: "Completed", logPath } };
    const late = await bench.run(["debug", "web", "--", "true"]);
    assert.deepEqual([late.exitCode, late.stdout], [0, "hello\n"], late.stderr);
    engine.debugged = { afterMs: 60_000, view: {} };
    const command = bench.start(["debug", "web", "--", "true"]);
    await command.prints(/container debugger-1 of pod web/);
    engine.change(uid, { state: "terminating" });
    const over = await command.ended;
    assert.equal(over.exitCode, 1);
    assert.match(over.stderr, /pod web has ended/);
  });
});

test("logs -f continues while a restarted engine may list fewer pods than are running", async () => {
  await withEngine({}, async (bench, engine) => {
    const logPath = join(bench.layout.stateDirectory, "0.log");
    await writeFile(logPath, line("one"));
    engine.views.set("uid-web", podView({ containers: [containerView({ logPath })] }));
    engine.knowsAllPods = false;
    const command = bench.start(["logs", "-f", "web"]);
    await command.prints(/one/);
    engine.views.delete("uid-web");
    await sleep(1500);
    await appendFile(logPath, line("two"));
    await command.prints(/two/);
    engine.knowsAllPods = true;
    assert.deepEqual(await command.ended, { exitCode: 0, stdout: "one\ntwo\n", stderr: "" });
  });
});

test("doctor checks the named runtime, or else the engine's", async () => {
  const version = { runtimeName: "cri-o", runtimeVersion: "1.37.0", runtimeApiVersion: "v1" };
  const conditions = [
    { type: "RuntimeReady", status: true },
    { type: "NetworkReady", status: true },
  ];
  await using runtime = await new CriServer({
    runtime: { version: () => version, status: () => ({ status: { conditions } }) },
  }).start();
  await withEngine({}, async (bench, engine) => {
    engine.runtimeEndpoint = runtime.endpoint;
    const named = `runtime +cri-o 1\\.37\\.0 at ${runtime.endpoint}`;
    const beside = await bench.run(["doctor"]);
    assert.match(beside.stdout, new RegExp(named));
    assert.doesNotMatch(beside.stdout, /programs|iptables|overlayfs/);
    const gone = await bench.run(["doctor", "--json", "--runtime-endpoint", "unix:///run/podwright-none.sock"]);
    assert.equal(gone.exitCode, 3);
    const { checks } = JSON.parse(gone.stdout) as { checks: { name: string; ok: string; detail: string }[] };
    const found = checks.find(({ name }) => name === "runtime");
    assert.match(
      `${found?.ok} ${found?.detail}`,
      /^failed no usable runtime at unix:\/\/\/run\/podwright-none\.sock: /,
    );
  });
});

test("logs are found on disk when no engine runs", async () => {
  await using bench = await CommandBench.open();
  const directory = "/var/log/pods/default_podwright-cli-test_uid-disk";
  try {
    await mkdir(`${directory}/app`, { recursive: true });
    await writeFile(`${directory}/app/0.log`, line("old"));
    await writeFile(`${directory}/app/1.log`, line("new"));
    const end = await bench.run(["logs", "podwright-cli-test"]);
    assert.equal(end.stdout, "new\n");
    assert.match(end.stderr, /no engine runs/);
    assert.equal((await bench.run(["logs", "-p", "uid-disk"])).stdout, "old\n");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

test("without an engine, commands report it and how to start one", async () => {
  await using bench = await CommandBench.open();
  for (const arguments_ of [["ps"], ["stop", "web"]]) {
    const end = await bench.run(arguments_);
    assert.equal(end.exitCode, 1, arguments_.join(" "));
    assert.match(end.stderr, /no engine runs for[^]*'\S*podwright run --state-dir /);
  }
  const why = await bench.run(["why", "web"]);
  assert.equal(why.exitCode, 2);
  assert.match(why.stderr, /no journal exists[^]*pod "web" not found/);
});

test("why and ps read the journal that the last engine left", async () => {
  await using bench = await CommandBench.open();
  await mkdir(bench.layout.journal);
  const pod = { namespace: "default", name: "web", uid: "uid-web" };
  const entry = { seq: 1, time: Date.now(), kind: "input", what: "PodAdded", message: "pod web was added", pod };
  await writeFile(join(bench.layout.journal, "journal-1.jsonl"), `${JSON.stringify(entry)}\n`);
  const why = await bench.run(["why", "web"]);
  assert.equal(why.exitCode, 0, why.stderr);
  assert.match(why.stdout, /pod web was added/);
  const ps = await bench.run(["ps"]);
  assert.equal(ps.exitCode, 1);
  assert.match(ps.stdout, /default +web +\d+s ago +pod web was added/);
});

test("usage errors have exit code 2, and mistyped commands get a suggestion", async () => {
  await using bench = await CommandBench.open();
  const mistyped = await bench.run(["tmeline", "web"]);
  assert.equal(mistyped.exitCode, 2);
  assert.match(mistyped.stderr, /podwright: unknown command 'tmeline'\n\(Did you mean timeline\?\)/);
  for (const arguments_ of [
    ["why"],
    ["ps", "--nope"],
    ["run", "--timeout", "soon", "x"],
    ["stop", "--grace", "-1", "x"],
  ]) {
    assert.equal((await bench.run(arguments_)).exitCode, 2, arguments_.join(" "));
  }
  const version = await bench.run(["version", "--json"]);
  assert.equal(version.exitCode, 0);
  assert.ok("version" in (JSON.parse(version.stdout) as object));
});

test("every command has help with exit code 0", async () => {
  await using bench = await CommandBench.open();
  for (const command of ["run", "ps", "logs", "stop", "why", "timeline", "doctor", "kubelet", "version"]) {
    const end = await bench.run([command, "--help"]);
    assert.equal(end.exitCode, 0);
    assert.match(end.stdout, new RegExp(`Usage: podwright ${command}`));
  }
});

test("a command ends quietly when its reader closes the pipe", async () => {
  await withEngine({}, async (bench, engine) => {
    const logPath = join(bench.layout.stateDirectory, "0.log");
    await writeFile(logPath, line("x".repeat(1000)).repeat(2000));
    engine.views.set("uid-web", podView({ containers: [containerView({ logPath })] }));
    const command = bench.start(["logs", "-f", "web"]);
    command.child.stdout?.once("data", () => command.child.stdout?.destroy());
    const end = await command.ended;
    assert.equal(end.stderr, "");
    assert.equal(end.exitCode, 0);
  });
});
