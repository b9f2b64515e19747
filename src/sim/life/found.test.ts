/**
 * Bugs that random lives found, played step by step; docs/simulator.md lists them. Bugs of a single file are tested
 * beside it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deaf, ends, podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import type { Container } from "../../api/container.ts";
import { CriError } from "../../ports/cri.ts";
import { hookCommand } from "../behaviour.ts";
import { asStatic } from "./cluster.ts";

const withPort = (container: Container): Container => ({
  ...container,
  ports: [{ containerPort: 80, hostPort: 8000 }],
});

test("a host port stays with the running pod over a restart, whichever pod a source reports first", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const first = podOf({ containers: [withPort(runs("c"))] }, "uid-1", "first");
  const second = podOf({ containers: [withPort(runs("c"))] }, "uid-2", "second");
  node.add(first);
  await scene.pass(5000);
  node.add(second);
  await scene.pass(5000);
  assert.equal(scene.status("uid-2")?.reason, "NodePorts");
  const running = world.running("uid-1", "c")?.id;
  node.kill();
  node.desired.clear();
  for (const pod of [second, first]) node.desired.set(pod.metadata.uid, pod);
  node.start();
  await scene.pass(20_000);
  assert.equal(world.running("uid-1", "c")?.id, running);
  assert.equal(world.running("uid-2", "c"), undefined);
});

test("a pod that is rejected again while its rejected predecessor with the same UID ends does not run", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  node.add(podOf({ containers: [withPort(runs("c"))] }, "uid-1", "first"));
  await scene.pass(5000);
  const second = podOf({ containers: [withPort(runs("c"))] }, "uid-2", "second");
  node.add(second);
  node.remove("uid-2");
  node.add(second);
  await scene.pass(20_000);
  assert.equal(world.running("uid-2", "c"), undefined);
  assert.equal(scene.status("uid-2")?.reason, "NodePorts");
});

test("a sidecar stops after the container that a canceled start has started meanwhile", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  using _watch = world.onChange(({ type, container }) => {
    if (type === "started" && container?.config.metadata?.name === "main") node.remove("uid-1");
  });
  const sidecar = runs("side", { restartPolicy: "Always" });
  node.add(podOf({ initContainers: [sidecar], containers: [runs("main"), runs("next")] }));
  await scene.pass(60_000);
  const [began = Number.NaN] = scene.at("stopping side");
  const [ended = Number.NaN] = scene.at("exited main");
  assert.ok(
    scene.at("started main").length === 0 || ended <= began,
    `main ended at ${ended}, side stopped at ${began}`,
  );
});

test("a canceled start no longer acts on the pod that starts over", async () => {
  const scene = new Scene();
  const restartPolicyRules = [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [3] } }];
  const upset = ends("c", 1000, 3, { restartPolicy: "Never", restartPolicyRules });
  const postStart = { exec: { command: hookCommand({ kind: "postStart", exitCode: 0, durationMs: 5000 }) } };
  const hooked = runs("hooked", { lifecycle: { postStart } });
  scene.node.add(podOf({ restartPolicy: "Always", containers: [upset, hooked, runs("last")] }));
  await scene.pass(60_000);
  const hooks = scene.at("started hooked");
  assert.ok(hooks.length >= 3);
  for (const time of scene.at("started last")) {
    const [latest = Number.NaN] = hooks.filter((before) => before <= time).slice(-1);
    assert.ok(time - latest >= 5000, `last started at ${time}, its predecessor at ${latest}`);
  }
});

test("a pod that returns with its UID while it is being stopped runs again, once", async () => {
  const scene = new Scene();
  const pod = podOf({ restartPolicy: "Never", terminationGracePeriodSeconds: 1, containers: [runs("c")] });
  scene.node.add(pod);
  await scene.pass(5000);
  scene.node.remove("uid-1");
  scene.node.add(pod);
  await scene.pass(30_000);
  assert.equal(scene.at("started c").length, 2);
  assert.equal(scene.status()?.phase, "Running");
  assert.notEqual(scene.world.running("uid-1", "c"), undefined);
});

test("a pod that has returned with its UID gets other resources only when they are granted", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const asking = (cpu: string) =>
    podOf({ containers: [runs("c", { resources: { limits: { cpu }, requests: { cpu } } })] });
  const quota = (): string => {
    const container = world.running("uid-1", "c");
    return String((container?.resources ?? container?.config.linux?.resources)?.cpuQuota);
  };
  node.add(asking("400m"));
  await scene.pass(5000);
  node.remove("uid-1");
  node.add(asking("300m"));
  await scene.pass(60_000);
  assert.equal(quota(), "30000");
  assert.deepEqual(scene.entries("ResizeStarted"), []);
  node.update(asking("200m"));
  await scene.pass(5000);
  assert.equal(quota(), "20000");
  assert.equal(scene.entries("ResizeStarted").length, 1);
});

test("an orphan loses nothing while it runs and cannot be inspected", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const directory = "/var/lib/kubelet/pods/uid-1";
  node.add(podOf({ volumes: [{ name: "v", emptyDir: {} }], containers: [runs("c")] }));
  await scene.pass(5000);
  assert.ok(await node.files.stat(directory));
  node.kill();
  node.desired.clear();
  const get = world.containers.get.bind(world.containers);
  world.containers.get = () => {
    throw new CriError("Unknown", "ContainerStatus", "no answer");
  };
  node.start();
  await scene.pass(15_000);
  assert.ok(await node.files.stat(directory));
  world.containers.get = get;
  await scene.pass(90_000);
  assert.equal(await node.files.stat(directory), undefined);
  assert.equal(world.sandboxes.size, 0);
});

test("a change right after the sandbox's creation creates no second one", async () => {
  const scene = new Scene();
  const { node, world, clock } = scene;
  const pod = podOf({ containers: [runs("a"), runs("b")] });
  const change = (count: number): void => {
    node.update({ ...pod, metadata: { ...pod.metadata, labels: { count: String(count) } } });
    if (count > 0) clock.schedule("another change", 1, () => change(count - 1));
  };
  using _watch = world.onChange(({ type }) => {
    if (type === "sandboxStarted") change(500);
  });
  node.add(pod);
  await scene.pass(60_000);
  assert.equal(node.entries.filter(({ kind, what }) => kind === "action" && what === "RunPodSandbox").length, 1);
  assert.equal(scene.status()?.phase, "Running");
});

test("a pod whose resources shrink during its start never has less than its container", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const withCpu = (cpu: string) =>
    podOf({ containers: [runs("c", { resources: { limits: { cpu }, requests: { cpu } } })] });
  const quotas = (): (bigint | number | undefined)[] => {
    const pod = [...node.cgroups.applied].find(([path]) => path.endsWith("/poduid-1"))?.[1];
    const container = world.running("uid-1", "c");
    return [pod?.cpuQuotaMicroseconds, (container?.resources ?? container?.config.linux?.resources)?.cpuQuota];
  };
  const seen: (bigint | number | undefined)[][] = [];
  using _watch = world.onChange(({ type }) => {
    if (type === "created") node.update(withCpu("100m"));
    if (type === "started" || type === "resized") seen.push(quotas());
  });
  node.add(withCpu("200m"));
  await scene.pass(60_000);
  assert.deepEqual(seen.map(String), ["20000,20000", "20000,10000"]);
  assert.equal(String(quotas()), "10000,10000");
});

test("a pod removed while it waits for its name is reported as finished", async () => {
  const scene = new Scene();
  const { node } = scene;
  node.add(podOf({ containers: [runs("c")] }, "uid-1"));
  await scene.pass(5000);
  node.remove("uid-1");
  node.add(podOf({ containers: [runs("c")] }, "uid-2"));
  node.remove("uid-2");
  const told = node.entries.filter(({ pod }) => pod?.uid === "uid-2").map(({ what }) => what);
  assert.deepEqual(told, ["PodWaits", "PodTerminating", "PodFinished"]);
});

test("a sidecar stops after the container that was being started when its pod was removed", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const late = ends("late", 20_000, 1, { restartPolicy: "Always" });
  using _watch = world.onChange(({ type, container }) => {
    const isSecond =
      type === "created" && container?.config.metadata?.name === "late" && scene.at("created late").length > 1;
    // While the call that starts it is on its way.
    if (isSecond) scene.clock.schedule("the pod to go", 20, () => node.remove("uid-1"));
  });
  const preStop = { sleep: { seconds: 3 } };
  const sidecar = runs("side", { restartPolicy: "Always" });
  node.add(podOf({ initContainers: [sidecar], containers: [runs("main", { lifecycle: { preStop } }), late] }));
  await scene.pass(120_000);
  const [began = Number.NaN] = scene.at("stopping side");
  const ended = scene.at("exited late").at(-1) ?? Number.NaN;
  assert.ok(ended <= began, `late ended at ${ended}, side stopped at ${began}`);
});

test("a pod whose resources shrink during a container's hook never has less than the container", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const postStart = { exec: { command: hookCommand({ kind: "postStart", exitCode: 0, durationMs: 5000 }) } };
  const withCpu = (cpu: string) => {
    const resources = { limits: { cpu }, requests: { cpu } };
    return podOf({ containers: [runs("a", { resources }), runs("b", { resources, lifecycle: { postStart } })] });
  };
  node.add(withCpu("300m"));
  await scene.pass(3000);
  node.update(withCpu("100m"));
  const quotaOfPod = (): bigint | number | undefined =>
    [...node.cgroups.applied].find(([path]) => path.endsWith("/poduid-1"))?.[1].cpuQuotaMicroseconds;
  await scene.pass(1000);
  assert.equal(String(quotaOfPod()), "60000");
  await scene.pass(30_000);
  assert.equal(String(quotaOfPod()), "20000");
  assert.equal(String(world.running("uid-1", "b")?.resources?.cpuQuota), "10000");
});

test("a failed static pod is not pending again after a restart", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const containers = [ends("ended", 1000, 3), runs("never", { image: "missing:1" })];
  node.add(asStatic(podOf({ restartPolicy: "Never", containers })));
  await scene.pass(30_000);
  for (const { id } of world.sandboxes.values()) world.stopSandbox(id);
  await scene.pass(30_000);
  node.kill();
  node.start();
  await scene.pass(30_000);
  const phases = scene.entries("PodPhaseChanged").map(({ data }) => data?.["to"]);
  assert.deepEqual(phases, ["Pending", "Failed", "Failed"]);
});

test("a pod that returns with its UID keeps its host port from a pod that was added while it was ending", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const first = podOf({ containers: [withPort(runs("c"))] }, "uid-1", "first");
  node.add(first);
  await scene.pass(5000);
  node.remove("uid-1");
  node.add(podOf({ containers: [withPort(runs("c"))] }, "uid-2", "second"));
  node.add(first);
  await scene.pass(60_000);
  assert.notEqual(world.running("uid-1", "c"), undefined);
  assert.equal(world.running("uid-2", "c"), undefined);
  assert.equal(scene.status("uid-2")?.reason, "NodePorts");
});

test("a container that started while allocations were being written is not started again", async () => {
  const scene = new Scene();
  const { node, world, clock } = scene;
  const write = node.files.write.bind(node.files);
  node.files.write = async (path, ...content) => {
    if (path.includes("allocated_pods_state")) await clock.incarnation().sleep("a slow disk", 300);
    return await write(path, ...content);
  };
  const other = podOf({ containers: [runs("other", { resources: { requests: { cpu: "1m" } } })] }, "uid-2", "other");
  using _watch = world.onChange(({ type, podUid }) => {
    if (type === "sandboxStarted" && podUid === "uid-1") node.add(other);
  });
  node.add(podOf({ containers: [runs("c"), runs("slow", { image: "large:1" })] }));
  await scene.pass(30_000);
  const made = scene.entries("CreateContainer").filter(({ kind, container }) => kind === "action" && container === "c");
  assert.equal(made.length, 1);
});

test("a host port stays with the running pod when manifests are read late after a restart", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const [first, second] = ["1", "2"].map((uid) => podOf({ containers: [withPort(runs("c"))] }, `uid-${uid}`, uid));
  assert.ok(first && second);
  node.add(first);
  await scene.pass(5000);
  node.add(second);
  await scene.pass(5000);
  const running = world.running("uid-1", "c")?.id;
  node.kill();
  node.desired.clear();
  for (const pod of [second, first]) node.desired.set(pod.metadata.uid, pod);
  scene.faults.begin({ manifestDelayMaxMs: 20_000 }, 20_000);
  node.start();
  await scene.pass(30_000);
  assert.equal(world.running("uid-1", "c")?.id, running);
  assert.equal(world.running("uid-2", "c"), undefined);
});

test("a host port stays with the running static pod, whichever manifest is read first after a restart", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const [first, second] = ["a", "b"].map((letter) =>
    asStatic(podOf({ containers: [withPort(runs("c"))] }, letter.repeat(32), letter)),
  );
  assert.ok(first && second);
  const { uid } = first.metadata;
  node.add(first);
  await scene.pass(5000);
  node.add(second);
  await scene.pass(5000);
  const running = world.running(uid, "c")?.id;
  assert.ok(running);
  node.kill();
  node.desired.clear();
  for (const pod of [second, first]) node.desired.set(pod.metadata.uid, pod);
  node.start();
  await scene.pass(30_000);
  assert.equal(world.running(uid, "c")?.id, running);
  assert.equal(world.running(second.metadata.uid, "c"), undefined);
});

test("a rejected pod is allocated its present manifest when it is admitted, not its earlier one", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  const asking = (milli: number): Container =>
    withPort(runs("c", { resources: { requests: { cpu: `${milli}m` }, limits: { cpu: `${milli}m` } } }));
  node.add(podOf({ containers: [withPort(runs("holder"))] }, "uid-1", "holder"));
  await scene.pass(5000);
  node.add(podOf({ containers: [asking(400)] }, "uid-2", "refused"));
  await scene.pass(5000);
  node.update(podOf({ containers: [asking(100)] }, "uid-2", "refused"));
  await scene.pass(5000);
  node.kill();
  node.desired.delete("uid-1");
  for (const { id } of world.sandboxes.values()) world.removeSandbox(id);
  node.start();
  await scene.pass(60_000);
  assert.equal(String(world.running("uid-2", "c")?.resources?.cpuQuota), "10000");
  assert.deepEqual(scene.entries("ResizeStarted"), []);
});

test("a slow disk at a pod's end counts into its grace period", async () => {
  const scene = new Scene();
  const { node } = scene;
  const preStop = { exec: { command: hookCommand({ kind: "preStop", exitCode: 0, durationMs: 4000 }) } };
  const pod = podOf({ terminationGracePeriodSeconds: 20, containers: [deaf("c", { lifecycle: { preStop } })] });
  node.add(pod);
  await scene.pass(5000);
  scene.faults.begin({ diskDelayMaxMs: 3000 }, 10_000);
  const beganMs = scene.clock.nowMs;
  node.remove("uid-1");
  await scene.pass(40_000);
  const [killedMs = 0] = scene.at("exited c");
  assert.ok(killedMs - beganMs <= 21_000, `killed after ${killedMs - beganMs} ms`);
});

test("a volume update that failed on a full disk is retried soon, not only at the next full sync", async () => {
  const scene = new Scene();
  const { node } = scene;
  const settings = { name: "settings", configMap: { name: "settings" } };
  const container = runs("c", { volumeMounts: [{ name: "settings", mountPath: "/s" }] });
  node.add(podOf({ volumes: [settings], containers: [container] }));
  await scene.pass(10_000);
  scene.faults.begin({ diskFull: true }, 5000);
  node.changeObjects("settings");
  await scene.pass(25_000);
  assert.deepEqual(
    scene.entries("UpdateVolume").flatMap(({ result }) => result ?? []),
    ["failed", "done"],
  );
});

test("a volume whose object changes during the write gets the new content", async () => {
  const scene = new Scene();
  const volumes = [{ name: "settings", configMap: { name: "settings" } }];
  const volumeMounts = [{ name: "settings", mountPath: "/settings" }];
  scene.faults.begin({ diskDelayMaxMs: 2000 }, 60_000);
  scene.node.add(podOf({ volumes, containers: [runs("c", { volumeMounts })] }));
  while (scene.entries("MountVolume").length === 0) await scene.pass(10);
  scene.node.changeObjects("settings");
  assert.equal(scene.entries("MountVolume").length, 1, "it is being written");
  await scene.pass(60_000);
  assert.equal(scene.at("started c").length, 1);
  assert.deepEqual(
    scene.entries("UpdateVolume").map(({ result }) => result),
    [undefined, "done"],
  );
});
