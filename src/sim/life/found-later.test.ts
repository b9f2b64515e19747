/** Later bugs that random lives found, played step by step; docs/simulator.md lists them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deaf, ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";
import { podUid } from "../../base/ids.ts";
import { keptSpec } from "../../runtime/layout/kept-spec.ts";
import { userIdsOf } from "../../runtime/config/namespaces.ts";
import { hookCommand } from "../behaviour.ts";
import { usualConfig } from "./node-config.ts";

const asking = (name: string, cpu: string): Pod => {
  const resources = { limits: { cpu }, requests: { cpu } };
  return podOf({ terminationGracePeriodSeconds: 20, containers: [deaf(name, { resources })] }, name, name);
};

/** One pod is removed, another waits for its resources, and a third is to grow into them. */
async function crowded(): Promise<Scene> {
  const scene = new Scene({ cpu: "1" });
  const { node } = scene;
  node.add(asking("goes", "500m"));
  node.add(asking("grows", "100m"));
  await scene.pass(5000);
  node.remove("goes");
  node.add(asking("waits", "800m"));
  node.update(asking("grows", "300m"));
  return scene;
}

test("resources that a pod waits for are not granted to a resize meanwhile", async () => {
  const scene = await crowded();
  const quotas = (): string[] =>
    ["grows", "waits"].map((name) => String(scene.world.running(name, name)?.resources?.cpuQuota));
  await scene.pass(60_000);
  assert.deepEqual(quotas(), ["10000", "80000"]);
  assert.deepEqual(scene.entries("OutOfcpu"), []);
  scene.node.remove("waits");
  await scene.pass(60_000);
  assert.deepEqual(quotas(), ["30000", "undefined"]);
});

test("a resize is granted as soon as no pod waits for its resources", async () => {
  const scene = await crowded();
  await scene.pass(1000);
  assert.equal(scene.entries("ResizeStarted").length, 0);
  scene.node.remove("waits");
  assert.equal(scene.entries("ResizeStarted").length, 1);
});

/** A pod is removed and returns under its UID with this request, while another is to grow. */
async function comesBack(cpu: string, again: string): Promise<Scene> {
  const scene = new Scene({ cpu: "1" });
  const { node } = scene;
  node.add(asking("back", cpu));
  node.add(asking("grows", "100m"));
  await scene.pass(5000);
  node.remove("back");
  node.add(asking("back", again));
  node.update(asking("grows", "600m"));
  await scene.pass(60_000);
  return scene;
}

test("a pod that returns with its UID gets its resources, also with a pending resize", async () => {
  const scene = await comesBack("500m", "500m");
  const quotas = ["back", "grows"].map((name) => String(scene.world.running(name, name)?.resources?.cpuQuota));
  assert.deepEqual(quotas, ["50000", "10000"]);
  assert.deepEqual(scene.entries("ResizeStarted"), []);
});

test("a pod that changes while its predecessor with the same UID ends gets more only if there is room", async () => {
  const scene = new Scene({ cpu: "1" });
  const { node, world } = scene;
  const quota = (): string => {
    const container = world.running("back", "back");
    return String((container?.resources ?? container?.config.linux?.resources)?.cpuQuota);
  };
  node.add(asking("stays", "500m"));
  node.add(asking("back", "100m"));
  await scene.pass(5000);
  node.remove("back");
  node.add(asking("back", "200m"));
  node.update(asking("back", "600m"));
  await scene.pass(60_000);
  assert.equal(quota(), "20000");
  assert.equal(scene.entries("ResizeDeferred").length, 1);
  node.remove("stays");
  await scene.pass(60_000);
  assert.equal(quota(), "60000");
  assert.deepEqual(scene.entries("ResizeStarted")[0]?.data?.["trigger"], "PodsRemoved");
});

test("a pod that returns with its UID and requests more gets all its resources, also with a pending resize", async () => {
  const scene = await comesBack("100m", "600m");
  assert.deepEqual(scene.entries("ResizeStarted"), []);
  assert.equal(String(scene.world.running("back", "back")?.config.linux?.resources?.cpuQuota), "60000");
});

test("a pending resize is granted as soon as a pod has ended, although its record stays", async () => {
  const scene = new Scene({ cpu: "1" });
  const { node } = scene;
  const resources = { limits: { cpu: "800m" }, requests: { cpu: "800m" } };
  node.add(podOf({ restartPolicy: "Never", containers: [ends("job", 20_000, 0, { resources })] }, "job", "job"));
  node.add(asking("grows", "100m"));
  await scene.pass(5000);
  node.update(asking("grows", "600m"));
  await scene.pass(10_000);
  assert.equal(scene.entries("ResizeDeferred").length, 1);
  await scene.pass(10_000);
  assert.deepEqual(
    scene.entries("ResizeStarted").map(({ data }) => data?.["trigger"]),
    ["RoomMade"],
  );
});

const withUsers = (uid: string): Pod => podOf({ hostUsers: false, containers: [runs("c")] }, uid, uid);

/** The node IDs of the users of the pod's newest sandbox, and of its running container. */
function idsOf({ world }: Scene, uid: string): unknown[] {
  const sandbox = [...world.sandboxes.values()].findLast(({ config, ready }) => ready && config.metadata?.uid === uid);
  return [sandbox, world.running(uid, "c")].map((made) =>
    userIdsOf(made?.config.linux?.securityContext?.namespaceOptions),
  );
}

/** A pod is added and removed; the runtime creates its sandbox all the same. */
async function madeLate(pod: Pod): Promise<Scene> {
  const scene = new Scene();
  const { node, world } = scene;
  node.add(pod);
  await scene.pass(40_000);
  const config = [...world.sandboxes.values()][0]?.config;
  assert.ok(config);
  node.remove(pod.metadata.uid);
  await scene.pass(40_000);
  assert.equal(world.sandboxes.size, 0);
  world.runSandbox(config, true);
  return scene;
}

test("a pod that returns to a sandbox that the runtime created late, with another user namespace, gets a new one", async () => {
  const pod = withUsers("back");
  const scene = await madeLate(pod);
  const late = [...scene.world.sandboxes.keys()];
  scene.node.add(pod);
  await scene.pass(60_000);
  const next = { first: 131_072, length: 65_536 };
  assert.deepEqual(idsOf(scene, "back"), [next, next]);
  const [first] = scene.entries("StopPodSandbox").filter(({ data }) => data?.["id"] === late[0]);
  assert.equal(first?.cause?.message, `sandbox ${late[0]} has a different user namespace from its pod's`);
  assert.ok(!scene.world.sandboxes.has(late[0] ?? ""));
});

test("a pod that returns to a sandbox that the runtime created late has its cgroup, and is known to the next run", async () => {
  const pod = podOf({ containers: [runs("c")] }, "back", "back");
  const scene = await madeLate(pod);
  const late = [...scene.world.sandboxes.keys()];
  // podwright has seen the sandbox when the pod is added, and so requests none.
  await scene.pass(1500);
  scene.node.add(pod);
  await scene.pass(60_000);
  assert.equal(scene.world.running("back", "c")?.sandboxId, late[0]);
  assert.equal(scene.entries("RunPodSandbox").filter(({ kind }) => kind === "action").length, 1);
  assert.ok([...scene.node.cgroups.applied.keys()].some((path) => path.endsWith("/podback")));
  assert.equal((await keptSpec(scene.node.files, usualConfig.node, podUid("back")))?.spec.containers[0]?.name, "c");
});

test("a sandbox that the runtime created after its pod had ended is stopped at once, before it is removed", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  node.add(podOf({ restartPolicy: "Never", containers: [ends("job", 1000, 0)] }, "job", "job"));
  await scene.pass(40_000);
  const config = [...world.sandboxes.values()][0]?.config;
  assert.ok(config?.metadata);
  const late = world.runSandbox({ ...config, metadata: { ...config.metadata, attempt: 1 } });
  await scene.pass(5000);
  const { ready, released } = world.sandboxes.get(late) ?? {};
  assert.deepEqual({ ready, released }, { ready: false, released: true });
  assert.equal(scene.status("job")?.phase, "Succeeded");
  node.remove("job");
  await scene.pass(60_000);
  const done = scene.entries("StopPodSandbox", "RemovePodSandbox").filter(({ data }) => data?.["id"] === late);
  const whats = done.map(({ what }) => what);
  assert.deepEqual(whats, ["StopPodSandbox", "RemovePodSandbox"]);
});

test("a pod whose deadline passes while a container restarts has not ended before that container", async () => {
  for (let durationMs = 500; durationMs <= 1500; durationMs += 50) {
    const scene = new Scene();
    // Without events, relists are each second.
    scene.faults.begin({ noEvents: true, eventLost: 1 }, 60_000);
    const postStart = { exec: { command: hookCommand({ kind: "postStart", exitCode: 1, durationMs }) } };
    const often = { activeDeadlineSeconds: 3, terminationGracePeriodSeconds: 1 };
    scene.node.add(podOf({ containers: [deaf("c", { lifecycle: { postStart } })], ...often }));
    for (let pauses = 0; pauses < 200; pauses++) {
      await scene.pass(50);
      const isOver = scene.status()?.phase === "Failed";
      assert.ok(!isOver || scene.world.running("uid-1", "c") === undefined, `with a hook of ${durationMs} ms`);
    }
    assert.equal(scene.status()?.phase, "Failed");
  }
});

/** A pod is preempted by a critical one, which also takes its host port, and podwright is restarted. */
async function madeRoom(): Promise<Scene> {
  const scene = new Scene({ cpu: "1" });
  const { node } = scene;
  const withPort = (name: string, cpu: string): Pod => {
    const { metadata, spec } = asking(name, cpu);
    const containers = spec.containers.map((each) => ({ ...each, ports: [{ containerPort: 80, hostPort: 8001 }] }));
    return { metadata, spec: { ...spec, containers } };
  };
  const critical = asking("critical", "600m");
  node.add(withPort("yields", "600m"));
  await scene.pass(5000);
  node.add({ ...critical, spec: { ...critical.spec, priority: 2_000_000_000 } });
  await scene.pass(60_000);
  node.add(withPort("next", "300m"));
  await scene.pass(5000);
  node.kill();
  node.start();
  await scene.pass(60_000);
  return scene;
}

test("a preempted pod has failed, also after a restart: it holds nothing and does not run", async () => {
  const scene = await madeRoom();
  const { node, world } = scene;
  const runsNow = (): string[] => ["yields", "critical", "next", "more"].filter((name) => world.running(name, name));
  assert.deepEqual(runsNow(), ["critical", "next"]);
  assert.deepEqual([scene.status("yields")?.phase, scene.status("yields")?.reason], ["Failed", "Preempting"]);
  assert.equal(scene.entries("Preempting").length, 1);
  node.add(asking("more", "100m"));
  await scene.pass(5000);
  assert.deepEqual(runsNow(), ["critical", "next", "more"]);
});

test("a preempted pod runs again when it is removed and added, also after a restart", async () => {
  const scene = await madeRoom();
  const { node, world } = scene;
  node.remove("critical");
  node.remove("yields");
  node.add(asking("yields", "600m"));
  await scene.pass(60_000);
  assert.ok(world.running("yields", "yields"));
  assert.equal(scene.status("yields")?.phase, "Running");
});

/** A pod has ended; podwright is restarted with another pod that needs its resources. */
async function overBefore(over: Pod["spec"], next: Pod): Promise<Scene> {
  const scene = new Scene({ cpu: "1" });
  const { node } = scene;
  node.add(podOf({ restartPolicy: "Never", ...over }, "over", "over"));
  node.add(asking("stays", "100m"));
  await scene.pass(10_000);
  node.kill();
  node.add(next);
  node.start();
  await scene.pass(60_000);
  return scene;
}

test("a pod that had ended before a restart holds nothing, and cannot be preempted", async () => {
  const resources = { limits: { cpu: "800m" }, requests: { cpu: "800m" } };
  const job = { containers: [ends("job", 3000, 0, { resources })] };
  const failed = { initContainers: [ends("init", 3000, 1)], containers: [runs("c", { resources })] };
  const deadline = { activeDeadlineSeconds: 3, containers: [runs("c", { resources })] };
  const normal = asking("next", "700m");
  const critical = { ...normal, spec: { ...normal.spec, priority: 2_000_000_000 } };
  for (const over of [job, failed, deadline]) {
    for (const next of [normal, critical]) {
      const scene = await overBefore(over, next);
      assert.deepEqual(scene.entries("Preempting", "OutOfcpu"), []);
      assert.ok(scene.world.running("next", "next"));
      assert.ok(scene.world.running("stays", "stays"));
      assert.equal(scene.status("over")?.phase, over === job ? "Succeeded" : "Failed");
      assert.equal(scene.status("over")?.reason, over === deadline ? "DeadlineExceeded" : undefined);
    }
  }
});

test("a pod has not ended while a canceled restart of its sidecar may still take effect", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const said: unknown[] = [];
  // The main container fails between creation and start of the sidecar's next instance.
  using _watch = world.onChange(({ type, container }) => {
    if (container?.config.metadata?.name !== "side" || container.config.metadata.attempt !== 1) return;
    if (type === "started") said.push(scene.status()?.phase);
    const main = world.running("uid-1", "main");
    if (type !== "created" || main === undefined) return;
    scene.clock.schedule("the main container fails", 5, () => world.exit(main, 1, "Error"));
  });
  const initContainers = [ends("side", 8000, 0, { restartPolicy: "Always" })];
  scene.faults.begin({ slowness: 20 }, 60_000);
  node.add(podOf({ restartPolicy: "Never", initContainers, containers: [runs("main")] }));
  await scene.pass(120_000);
  assert.deepEqual(said, ["Running"]);
  assert.equal(scene.status()?.phase, "Failed");
});

test("a pod reports why it ended even if it lost its sandbox before a created container was started", async () => {
  const scene = new Scene({ cpu: "1" });
  const { node, world } = scene;
  const critical = asking("critical", "600m");
  using _watch = world.onChange(({ type, container }) => {
    if (type !== "created" || container?.config.metadata?.name !== "yields") return;
    node.kill();
    world.stopSandbox(container.sandboxId);
  });
  node.add(asking("yields", "600m"));
  await scene.pass(10_000);
  assert.equal(scene.container("yields").state, "created");
  node.add({ ...critical, spec: { ...critical.spec, priority: 2_000_000_000 } });
  node.start();
  await scene.pass(60_000);
  assert.ok(world.running("critical", "critical"));
  assert.deepEqual([scene.status("yields")?.phase, scene.status("yields")?.reason], ["Failed", "Preempting"]);
});

test("a pod preempted while the disk was full has ended for the next run, too, once the disk has space", async () => {
  const scene = new Scene({ cpu: "1" });
  const { node, world } = scene;
  const critical = asking("critical", "600m");
  node.add(asking("yields", "600m"));
  await scene.pass(5000);
  scene.faults.begin({ diskFull: true }, 60_000);
  node.add({ ...critical, spec: { ...critical.spec, priority: 2_000_000_000 } });
  await scene.pass(120_000);
  node.kill();
  node.start();
  await scene.pass(60_000);
  assert.equal(world.running("yields", "yields"), undefined);
  assert.deepEqual([scene.status("yields")?.phase, scene.status("yields")?.reason], ["Failed", "Preempting"]);
});

test("a failed stop of a container is retried after a pause, and at once when its definition changes", async () => {
  const scene = new Scene();
  const of = (image: string): Pod => podOf({ restartPolicy: "Always", containers: [runs("c", { image })] });
  scene.node.add(of("busybox"));
  await scene.pass(5000);
  scene.faults.begin({ stopFails: 1 }, 25_000);
  scene.node.update(of("busybox:2"));
  await scene.pass(1000);
  scene.node.update(of("busybox:3"));
  await scene.pass(59_000);
  const tries = scene.entries("StopContainer").filter(({ kind }) => kind === "action");
  assert.ok(tries.length >= 4 && tries.length <= 7, `${tries.length} tries`);
  assert.ok((tries[1]?.atMs ?? 0) - (tries[0]?.atMs ?? 0) < 1100, "the change is taken up at once");
  assert.match(scene.entries("StartRetry")[0]?.message ?? "", /waits \d+ s before its retry: KillContainerError: /);
  assert.equal(scene.world.running("uid-1", "c")?.config.image?.userSpecifiedImage, "busybox:3");
});

test("a pod that returns after a restart does not get its host port from a pod admitted meanwhile", async () => {
  const scene = new Scene();
  const { node } = scene;
  const withPort = (name: string): Pod =>
    podOf({ containers: [runs(name, { ports: [{ containerPort: 80, hostPort: 80 }] })] }, name, name);
  node.add(withPort("before"));
  await scene.pass(5000);
  node.kill();
  node.remove("before");
  node.add(withPort("after"));
  scene.faults.begin({ lookSlowness: 20 }, 10_000);
  node.start();
  await scene.pass(700);
  assert.equal(scene.entries("PodPhaseChanged").at(-1)?.pod?.uid, "after");
  node.add(withPort("before"));
  await scene.pass(60_000);
  assert.deepEqual(
    scene.entries("NodePorts").map(({ pod }) => pod?.uid),
    ["before"],
  );
  assert.equal(scene.world.running("before", "before"), undefined);
  assert.ok(scene.world.running("after", "after"));
});

test("a container that waits for a missing image runs as soon as its spec has another one", async () => {
  const scene = new Scene();
  const of = (image: string): Pod => podOf({ restartPolicy: "Always", containers: [runs("c", { image })] });
  scene.node.add(of("missing:1"));
  await scene.pass(180_000);
  assert.equal(scene.status()?.containerStatuses?.[0]?.state.waiting?.reason, "ImagePullBackOff");
  scene.node.update(of("busybox"));
  await scene.pass(2000);
  assert.equal(scene.at("started c").length, 1);
});
