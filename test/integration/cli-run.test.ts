import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { podUid } from "../../src/base/ids.ts";
import { webManifest, withEngine } from "../support/command.ts";
import { FakeEngine } from "../support/fake-engine.ts";
import { containerView, podView } from "../support/pod-views.ts";

test("run --detach returns when the pod is ready and prints its address", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const end = await bench.run(["run", "--detach", path]);
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /running web on fake 1\.0/);
    assert.match(end.stdout, /✓ start container app {3}12 ms/);
    assert.match(
      end.stdout,
      /● web is ready[^]*http:\/\/127\.0\.0\.1:8080[^]*10\.88\.0\.2[^]*podwright logs --state-dir \S+ -f web/,
    );
    assert.equal(engine.applied.length, 1);
  });
});

test("run --detach --json prints only the pods, for programs", async () => {
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

test("run --detach fails if the pod is not ready in time, with the explanation of why", async () => {
  await withEngine({ becomes: "stuck" }, async (bench, engine, path) => {
    const end = await bench.run(["run", "--detach", "--timeout", "500ms", path]);
    assert.equal(end.exitCode, 1);
    assert.match(end.stderr, /podwright: web is not ready after 500 ms: container app is waiting: ErrImageNeverPull/);
    assert.match(end.stderr, /because +pod web was added/);
    assert.equal(engine.pods().length, 1, "the pod is left to the engine");
  });
});

test("run --detach fails immediately when the pod has failed", async () => {
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
    assert.deepEqual(
      engine.stops.map((stop) => stop.graceSeconds),
      [undefined],
    );
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
    assert.deepEqual(
      engine.stops.map((stop) => stop.graceSeconds),
      [undefined, 0],
    );
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

test("run reports restarts with their cause, and pods that become unready", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const command = bench.start(["run", path]);
    await command.prints(/Ctrl-C stops them/);
    const [pod] = engine.pods();
    assert.ok(pod);
    const waiting = containerView({ state: "waiting", reason: "CrashLoopBackOff", ready: false });
    engine.change(pod.uid, { ready: false, containers: [waiting] });
    const ref = { namespace: pod.namespace, name: pod.name, uid: pod.uid };
    const until = Date.now() + 10_000;
    engine.record({
      kind: "decision",
      what: "BackOff",
      message: "back-off of container app",
      pod: ref,
      container: "app",
      until,
    });
    await command.prints(/web is not ready\n {2}container app is waiting: CrashLoopBackOff/);
    await command.prints(/! back-off of container app {3}waits 10\.0 s/);
    const cause = { code: "ContainerExited", message: "container app exited with code 3" } as const;
    const of = engine.record({
      kind: "action",
      what: "StartContainer",
      message: "start container app",
      pod: ref,
      container: "app",
      cause,
    });
    engine.record({
      kind: "outcome",
      what: "StartContainer",
      message: "done",
      pod: ref,
      container: "app",
      of,
      result: "done",
      durationMs: 9,
    });
    engine.change(pod.uid, { ready: true, containers: [containerView({ restartCount: 1 })] });
    await command.prints(/✓ start container app {3}9 ms {3}because container app exited with code 3/);
    await command.prints(/↻ web: container app was restarted for the 1st time/);
    command.child.kill("SIGINT");
    await command.ended;
  });
});

test("broken manifests are reported with file, line and field, and the others run", async () => {
  await withEngine({}, async (bench, engine, path) => {
    const broken = join(bench.layout.stateDirectory, "broken.yaml");
    await writeFile(broken, webManifest.replace("containers:", "container:"));
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
    const end = await bench.run(["run", "--detach", "-"], webManifest);
    assert.equal(end.exitCode, 0, end.stderr);
    assert.match(end.stdout, /web is ready/);
  });
});

test("run without a file starts the stored pods, or reports that there are none", async () => {
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

test("a job that ran before runs again", async () => {
  await withEngine({ becomes: "succeeded" }, async (bench, engine, path) => {
    assert.equal((await bench.run(["run", "--detach", path])).exitCode, 0);
    assert.equal((await bench.run(["run", "--detach", path])).exitCode, 0);
    assert.equal(engine.stops.length, 0, "a stop would remove what its manifest alone does not bring again");
    assert.equal(engine.journal.filter((entry) => entry.what === "PodAdded").length, 2);
  });
});

test("a runtime endpoint other than the running engine's is rejected", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    const end = await bench.run(["run", "--detach", "--runtime-endpoint", "unix:///run/other.sock", path]);
    assert.equal(end.exitCode, 2);
    assert.match(end.stderr, /uses unix:\/\/\/fake\.sock, not unix:\/\/\/run\/other\.sock/);
  });
});

test("run reports the death of its engine and follows the next one", async () => {
  await withEngine({}, async (bench, _engine, path) => {
    const command = bench.start(["run", path]);
    await command.prints(/Ctrl-C stops them/);
    const next = new FakeEngine({ stopMs: 10 });
    next.views.set("uid-web-1", podView({ uid: podUid("uid-web-1") }));
    // The journal's numbering continues: these entries were seen, or concern no pod.
    for (let count = 0; count < 4; count++) next.record({ kind: "note", what: "PodwrightStarted", message: "started" });
    await bench.replace(next);
    await command.prints(/the engine stopped; restarting it, its pods keep running/);
    const pod = { namespace: "default", name: "web", uid: podUid("uid-web-1") };
    next.record({ kind: "note", what: "UserNamespaceAssigned", message: "adopted, its containers go on", pod });
    await command.prints(/· adopted, its containers go on/);
    command.child.kill("SIGINT");
    const end = await command.ended;
    next.end();
    assert.equal(end.exitCode, 0, end.stderr);
    assert.deepEqual(
      next.stops.map(({ uid }) => uid),
      ["uid-web-1"],
    );
  });
});
