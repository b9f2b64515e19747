/** Bugs that random lives found before seeds were kept, played step by step; docs/simulator.md lists them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import { SimConnection } from "../cri.ts";
import { noFaults } from "../cri-faults.ts";
import { SimClock } from "../clock.ts";
import { healthPath } from "../health.ts";
import { SimRandom } from "../random.ts";
import { RuntimeWorld } from "../runtime-world.ts";
import { asStatic } from "./cluster.ts";

test("an orphan of an earlier run is stopped when its successor waits for its name", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  node.add(podOf({ containers: [runs("c")] }, "uid-1"));
  await scene.pass(5000);
  node.kill();
  node.remove("uid-1");
  node.desired.set("uid-2", podOf({ containers: [runs("c")] }, "uid-2"));
  node.start();
  await scene.pass(60_000);
  assert.equal(world.running("uid-1", "c"), undefined);
  assert.ok(world.running("uid-2", "c"));
  const [gone = Number.NaN] = scene.at("sandboxRemoved uid-1");
  const [begun = Number.NaN] = scene.at("sandboxStarted uid-2");
  assert.ok(gone <= begun, `one was gone at ${gone}, the other began at ${begun}`);
});

test("a succeeded job is not restarted for a probe that failed at its end", async () => {
  const scene = new Scene();
  scene.faults.begin({ noEvents: true, eventLost: 1 }, 120_000);
  const containers = [500, 900, 1300, 1700].map((ms) => {
    const path = healthPath("uid-1", `job-${ms}`, "liveness", undefined);
    const livenessProbe = { httpGet: { port: 80, path }, periodSeconds: 1, failureThreshold: 1 };
    return ends(`job-${ms}`, 20_000 + ms, 0, { livenessProbe });
  });
  scene.node.add(podOf({ restartPolicy: "OnFailure", containers }));
  await scene.pass(120_000);
  for (const { name } of containers) assert.equal(scene.at(`started ${name}`).length, 1, name);
  assert.equal(scene.status()?.phase, "Succeeded");
});

test("a container's last run stays recorded while its next instance is created", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const kept: boolean[] = [];
  using _watch = world.onChange(({ type, container }) => {
    if (type !== "started" || container?.config.metadata?.attempt === 0) return;
    const states = [...world.containers.values()].map(({ state }) => state);
    kept.push(states.includes("exited"));
  });
  node.add(podOf({ restartPolicy: "Always", containers: [ends("c", 1000, 1)] }));
  await scene.pass(300_000);
  assert.ok(kept.length > 2 && kept.every(Boolean), String(kept));
  const last = scene.status()?.containerStatuses?.[0];
  assert.equal((last?.state.terminated ?? last?.lastState.terminated)?.exitCode, 1);
});

test("a running static pod is not an orphan while the disk is slow at the start", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const uid = "a".repeat(32);
  node.add(asStatic(podOf({ containers: [runs("c")] }, uid)));
  await scene.pass(5000);
  const running = world.running(uid, "c")?.id;
  assert.ok(running);
  node.kill();
  scene.faults.begin({ diskDelayMaxMs: 5000 }, 60_000);
  node.start();
  await scene.pass(120_000);
  assert.equal(world.running(uid, "c")?.id, running);
  assert.deepEqual(scene.entries("PodTerminating"), []);
});

test("a failed resize that waits for a container is not retried in a loop", async () => {
  const scene = new Scene();
  const withCpu = (cpu: string) => {
    const resources = { limits: { cpu }, requests: { cpu } };
    return podOf({ containers: [runs("a", { resources }), ends("b", 40_000, 1, { resources, image: "large:1" })] });
  };
  scene.node.add(withCpu("100m"));
  await scene.pass(60_000);
  scene.node.update(withCpu("200m"));
  scene.faults.begin({ failBefore: 1 }, 8000);
  // The clock ends a life that does not advance.
  await scene.pass(300_000);
  assert.equal(String(scene.world.running("uid-1", "a")?.resources?.cpuQuota), "20000");
});

test("a pod that returns with its UID starts over, whatever its predecessor's result", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  // No event reports in time that the first one is gone.
  scene.faults.begin({ eventLost: 1 }, 60_000);
  const pod = podOf({ restartPolicy: "Never", containers: [ends("c", 1000, 1), runs("d")] });
  node.add(pod);
  await scene.pass(5000);
  node.remove("uid-1");
  node.add(pod);
  await scene.pass(60_000);
  assert.equal(scene.at("started c").length, 2);
  assert.equal(world.running("uid-1", "d")?.config.metadata?.attempt, 0);
  assert.equal(scene.status()?.phase, "Running");
});

test("a pod that returns with its UID while it is being stopped continues its restart count from the remaining log", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const pod = podOf({ terminationGracePeriodSeconds: 1, containers: [runs("c")] });
  const logs = "/var/log/pods/default_web_uid-1/c";
  const names = async (): Promise<string[]> => (await node.files.list(logs)).map(({ name }) => name);
  const attempt = (): number | undefined => world.running("uid-1", "c")?.config.metadata?.attempt;
  node.add(pod);
  await scene.pass(5000);
  for (const count of [0, 1]) {
    assert.equal(attempt(), count);
    for (const name of [`${count}.log`, `${count}.log.20260102-150405`]) {
      await node.files.append(`${logs}/${name}`, "x", 0o640);
    }
    node.remove("uid-1");
    node.add(pod);
    await scene.pass(30_000);
    assert.deepEqual(await names(), [`${count}.log`, `${count}.log.20260102-150405`]);
  }
  assert.equal(attempt(), 2);
  assert.equal(scene.status()?.containerStatuses?.[0]?.restartCount, 2);

  // It is dropped when its waiting period is over.
  node.remove("uid-1");
  node.add(pod);
  const left = world.onChange(({ type }) => {
    if (type !== "sandboxRemoved") return;
    left[Symbol.dispose]();
    scene.clock.schedule("the pod to be unwanted again", 1, () => node.remove("uid-1"));
  });
  await scene.pass(300_000);
  assert.equal(world.containers.size, 0);
  for (const directory of [logs, "/var/log/pods/default_web_uid-1", "/var/lib/kubelet/pods/uid-1"]) {
    assert.equal(await node.files.stat(directory), undefined, directory);
  }
});

test("directories of a running pod stay while the runtime does not respond", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const volumes = [{ name: "data", emptyDir: {} }];
  node.add(podOf({ volumes, containers: [runs("c", { volumeMounts: [{ name: "data", mountPath: "/data" }] })] }));
  await scene.pass(5000);
  node.kill();
  node.remove("uid-1");
  const directory = "/var/lib/kubelet/pods/uid-1/volumes";
  const taken: string[] = [];
  // The runtime has listed the pod long before it responds about its status.
  scene.faults.begin({ lookSlowness: 1000 }, 60_000);
  node.start();
  for (let second = 0; second < 120; second++) {
    await scene.pass(1000);
    const isThere = (await node.files.stat(directory)) !== undefined;
    if (!isThere && world.running("uid-1", "c") !== undefined) taken.push(`after ${second} s`);
  }
  assert.deepEqual(taken, []);
  assert.equal(world.sandboxes.size, 0);
});

test("a simulated call that hangs ends at its deadline", async () => {
  const clock = new SimClock(1_700_000_000_000);
  const connection = new SimConnection(new RuntimeWorld(clock), clock.incarnation(), new SimRandom(1), {
    ...noFaults,
    hang: 1,
  });
  let ended: unknown;
  void connection.cri.runtime.version({}, { timeoutMs: 2000 }).catch((error: unknown) => (ended = error));
  await clock.run(1900);
  assert.equal(ended, undefined);
  await clock.run(2100);
  assert.match(String(ended), /deadline/i);
});
