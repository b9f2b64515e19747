import assert from "node:assert/strict";
import { appendFile, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { CommandBench } from "../support/command.ts";
import { FakeEngine, type FakeLife } from "../support/fake-engine.ts";
import { containerView, podView } from "../support/pod-views.ts";

const manifest = `
apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers: [{ name: app, image: "podwright.local/demo:1" }]
`;

/** A bench with an engine; the manifest of a pod `web` is at the path. */
async function withEngine(
  life: Partial<FakeLife>,
  work: (bench: CommandBench, engine: FakeEngine, path: string) => Promise<void>,
): Promise<void> {
  await using bench = await CommandBench.open();
  const engine = new FakeEngine(life);
  await bench.serve(engine);
  const path = join(bench.layout.stateDirectory, "web.yaml");
  await writeFile(path, manifest);
  try {
    await work(bench, engine, path);
  } finally {
    engine.end();
  }
}

test("run --detach returns when the pod is ready and prints where it is", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const end = await bench.run(["run", "--detach", path]);
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /running web on fake 1\.0/);
    assert.match(end.stdout, /✓ start container app {3}12 ms/);
    assert.match(end.stdout, /● web is ready[^]*http:\/\/127\.0\.0\.1:8080[^]*10\.88\.0\.2[^]*podwright logs -f web/);
    assert.equal(engine.applied.length, 1);
  });
});

test("run --detach --json prints the pods for a program and nothing else", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    const end = await bench.run(["run", "--json", path]);
    assert.equal(end.exitCode, 0, end.stderr);
    const answer = JSON.parse(end.stdout) as { reached: boolean; pods: { name: string; ready: boolean }[] };
    assert.equal(answer.reached, true);
    assert.deepEqual(
      answer.pods.map(({ name, ready }) => ({ name, ready })),
      [{ name: "web", ready: true }],
    );
  });
});

test("run --detach that is not ready in time fails and says what why says", async () => {
  await withEngine({ becomes: "stuck" }, async (bench, engine, path) => {
    const end = await bench.run(["run", "--detach", "--timeout", "500ms", path]);
    assert.equal(end.exitCode, 1);
    assert.match(end.stderr, /podwright: web is not ready after 500 ms: container app is waiting: ErrImageNeverPull/);
    assert.match(end.stderr, /because +pod web was added/);
    assert.equal(engine.pods().length, 1, "the pod is left to the engine");
  });
});

test("run --detach fails at once when the pod has failed", async () => {
  await withEngine({ becomes: "failed" }, async (bench, _engine, path) => {
    const end = await bench.run(["run", "--detach", path]);
    assert.equal(end.exitCode, 1);
    assert.match(end.stderr, /web failed: container app ended with exit code 3 \(Error\)/);
  });
});

test("run in the foreground stays, and Ctrl-C stops the pod with a countdown", async () => {
  await withEngine({ stopMs: 700 }, async (bench, engine, path) => {
    const command = bench.start(["run", path]);
    await command.prints(/Ctrl-C stops them/);
    command.child.kill("SIGINT");
    const end = await command.ended;
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /stopping web: 30 s until SIGKILL\n[^]*✓ web is stopped/);
    assert.deepEqual(engine.stops.map((stop) => stop.graceSeconds), [undefined]);
  });
});

test("a second Ctrl-C cuts the grace period short", async () => {
  await withEngine({ stopMs: 60_000 }, async (bench, engine, path) => {
    const command = bench.start(["run", path]);
    await command.prints(/Ctrl-C stops them/);
    command.child.kill("SIGINT");
    await command.prints(/until SIGKILL/);
    command.child.kill("SIGINT");
    const end = await command.ended;
    assert.equal(end.exitCode, 0, end.stderr);
    assert.deepEqual(engine.stops.map((stop) => stop.graceSeconds), [undefined, 0]);
  });
});

test("run --keep leaves the pods running on Ctrl-C", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const command = bench.start(["run", "--keep", path]);
    await command.prints(/Ctrl-C leaves them running/);
    command.child.kill("SIGINT");
    const end = await command.ended;
    assert.equal(end.exitCode, 0, end.stderr);
    assert.deepEqual(engine.stops, []);
    assert.equal(engine.pods().length, 1);
  });
});

test("run ends with its pods: exit code 0 when all succeeded, 1 otherwise", async () => {
  await withEngine({ becomes: "succeeded" }, async (bench, engine, path) => {
    const end = await bench.run(["run", path]);
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /● web succeeded/);
    assert.equal(engine.pods().length, 0, "what has ended is removed");
  });
  await withEngine({ becomes: "failed" }, async (bench, _engine, path) => {
    const end = await bench.run(["run", path]);
    assert.equal(end.exitCode, 1);
    assert.match(end.stdout, /● web failed\n {2}container app ended with exit code 3 \(Error\)/);
  });
});

test("run ends quietly when another command stops its pod", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    const command = bench.start(["run", path]);
    await command.prints(/Ctrl-C stops them/);
    const stop = await bench.run(["stop", "web"]);
    assert.equal(stop.exitCode, 0, stop.stderr);
    const end = await command.ended;
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /web is gone/);
  });
});

test("run tells of restarts, with the cause, and of a pod that is no longer ready", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const command = bench.start(["run", path]);
    await command.prints(/Ctrl-C stops them/);
    const [pod] = engine.pods();
    assert.ok(pod);
    const waiting = containerView({ state: "waiting", reason: "CrashLoopBackOff", ready: false });
    engine.change(pod.uid, { ready: false, containers: [waiting] });
    const ref = { namespace: pod.namespace, name: pod.name, uid: pod.uid };
    const until = Date.now() + 10_000;
    engine.record({ kind: "decision", what: "BackOff", message: "back-off of container app", pod: ref, container: "app", until });
    await command.prints(/web is not ready\n {2}container app is waiting: CrashLoopBackOff/);
    await command.prints(/! back-off of container app {3}waits 10\.0 s/);
    const cause = { code: "ContainerExited", message: "container app exited with code 3" };
    const of = engine.record({ kind: "action", what: "StartContainer", message: "start container app", pod: ref, container: "app", cause });
    engine.record({ kind: "outcome", what: "StartContainer", message: "done", pod: ref, container: "app", of, result: "done", durationMs: 9 });
    engine.change(pod.uid, { ready: true, containers: [containerView({ restartCount: 1 })] });
    await command.prints(/✓ start container app {3}9 ms {3}because container app exited with code 3/);
    await command.prints(/↻ web: container app was restarted, 1st time/);
    command.child.kill("SIGINT");
    await command.ended;
  });
});

test("broken manifests are told with file, line and field, and the others run", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const broken = join(bench.layout.stateDirectory, "broken.yaml");
    await writeFile(broken, manifest.replace("containers:", "container:"));
    const both = await bench.run(["run", "--detach", broken, path]);
    assert.equal(both.exitCode, 2);
    assert.match(both.stderr, /podwright: \S*broken\.yaml:\d+:\d+: .*container/);
    assert.match(both.stdout, /web is ready/);
    const none = await bench.run(["run", "--detach", broken]);
    assert.equal(none.exitCode, 2);
    assert.equal(engine.applied.length, 1, "nothing is handed over when all is broken");
  });
});

test("run reads standard input", async () => {
  await withEngine({}, async (bench) => {
    const end = await bench.run(["run", "--detach", "-"], manifest);
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /web is ready/);
  });
});

test("run without a file takes up the stored pods, or says that there are none", async () => {
  await withEngine({}, async (bench, engine) => {
    const none = await bench.run(["run", "--detach"]);
    assert.equal(none.exitCode, 2);
    assert.match(none.stderr, /no pods are stored/);
    engine.views.set("uid-web", podView({}));
    const end = await bench.run(["run", "--detach"]);
    assert.equal(end.exitCode, 0, end.stderr);
    assert.equal(engine.applied.length, 0);
  });
});

test("a job that ran before runs anew", async () => {
  await withEngine({ becomes: "succeeded" }, async (bench, engine, path) => {
    assert.equal((await bench.run(["run", "--detach", path])).exitCode, 0);
    assert.equal((await bench.run(["run", "--detach", path])).exitCode, 0);
    assert.equal(engine.stops.length, 1);
    assert.equal(engine.journal.filter((entry) => entry.what === "PodAdded").length, 2);
  });
});

test("a runtime endpoint other than the running engine's is refused", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    const end = await bench.run(["run", "--detach", "--runtime-endpoint", "unix:///run/other.sock", path]);
    assert.equal(end.exitCode, 2);
    assert.match(end.stderr, /uses unix:\/\/\/fake\.sock, not unix:\/\/\/run\/other\.sock/);
  });
});

test("ps lists pods as a table and as JSON", async () => {
  await withEngine({}, async (bench, engine) => {
    assert.match((await bench.run(["ps"])).stderr, /no pods/);
    engine.views.set("uid-web", podView({}));
    assert.match((await bench.run(["ps"])).stdout, /^NAMESPACE +NAME +READY[^\n]*\ndefault +web +1\/1 +Running/);
    const { pods } = JSON.parse((await bench.run(["ps", "-o", "json"])).stdout) as { pods: { uid: string }[] };
    assert.deepEqual(pods.map(({ uid }) => uid), ["uid-web"]);
  });
});

test("why and timeline answer for a pod, as text and as JSON", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    await bench.run(["run", "--detach", path]);
    const why = await bench.run(["why", "web"]);
    assert.equal(why.exitCode, 0, why.stderr);
    assert.match(why.stdout, /default\/web[^]*container app[^]*because +pod web was added/);
    const timeline = await bench.run(["timeline", "default/web", "--json"]);
    const { lines } = JSON.parse(timeline.stdout) as { lines: { step: { what: string } }[] };
    assert.deepEqual(lines.map((line) => line.step.what), ["PodAdded", "StartContainer"]);
    const unknown = await bench.run(["why", "wep"]);
    assert.equal(unknown.exitCode, 2);
    assert.match(unknown.stderr, /there is no pod "wep"\n.*did you mean web\?/);
  });
});

test("stop stops what it can and tells of the rest", async () => {
  await withEngine({}, async (bench, engine) => {
    engine.views.set("uid-web", podView({}));
    const end = await bench.run(["stop", "--grace", "3", "--json", "nobody", "web"]);
    assert.equal(end.exitCode, 2);
    assert.match(end.stderr, /there is no pod "nobody"/);
    assert.deepEqual(JSON.parse(end.stdout), { stopped: [{ namespace: "default", name: "web", uid: "uid-web" }] });
    assert.deepEqual(engine.stops, [{ uid: "uid-web", graceSeconds: 3 }]);
  });
});

/** Of a time long ago. */
const line = (text: string, stream = "stdout"): string => `2025-11-20T14:00:00.000000001Z ${stream} F ${text}\n`;

test("logs prints both streams apart, from the end, with times", async () => {
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
    engine.views.delete("uid-web");
    assert.deepEqual(await command.ended, { exitCode: 0, stdout: "one\ntwo\nthree\nfour\n", stderr: "" });
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

test("without an engine commands say so and how to start one", async () => {
  await using bench = await CommandBench.open();
  for (const arguments_ of [["ps"], ["stop", "web"]]) {
    const end = await bench.run(arguments_);
    assert.equal(end.exitCode, 1, arguments_.join(" "));
    assert.match(end.stderr, /no engine runs for[^]*'podwright run --state-dir /);
  }
  const why = await bench.run(["why", "web"]);
  assert.equal(why.exitCode, 2);
  assert.match(why.stderr, /it left no journal[^]*there is no pod "web"/);
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

test("an engine that dies while it is followed is started again, and its failure told", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    const command = bench.start(["run", path, "--runtime-endpoint", "unix:///fake.sock"]);
    await command.prints(/Ctrl-C stops them/);
    await bench.unserve();
    const revived = new FakeEngine();
    revived.views.set("uid-web-1", podView({ uid: "uid-web-1" }));
    await bench.serve(revived);
    await command.prints(/the engine ended; starting it again|is gone/);
    command.child.kill("SIGINT");
    const end = await command.ended;
    assert.equal(end.exitCode, 0, end.stderr);
    assert.deepEqual(revived.stops.map(({ uid }) => uid), ["uid-web-1"]);
  });
});

test("usage errors have exit code 2, and a mistyped command is guessed", async () => {
  await using bench = await CommandBench.open();
  const mistyped = await bench.run(["tmeline", "web"]);
  assert.equal(mistyped.exitCode, 2);
  assert.match(mistyped.stderr, /podwright: unknown command 'tmeline'\n\(Did you mean timeline\?\)/);
  for (const arguments_ of [["why"], ["ps", "--nope"], ["run", "--timeout", "soon", "x"], ["stop", "--grace", "-1", "x"]]) {
    assert.equal((await bench.run(arguments_)).exitCode, 2, arguments_.join(" "));
  }
  const version = await bench.run(["version", "--json"]);
  assert.equal(version.exitCode, 0);
  assert.ok("version" in (JSON.parse(version.stdout) as object));
});

test("every command has help with its exit code 0", async () => {
  await using bench = await CommandBench.open();
  for (const command of ["run", "ps", "logs", "stop", "why", "timeline", "doctor", "kubelet", "version"]) {
    const end = await bench.run([command, "--help"]);
    assert.equal(end.exitCode, 0);
    assert.match(end.stdout, new RegExp(`Usage: podwright ${command}`));
  }
});

test("a reader that goes away ends a command quietly", async () => {
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
