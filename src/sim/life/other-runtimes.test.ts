/** Behaviour of runtimes other than containerd, or of an absent runtime, played step by step. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { podOf, runs, Scene } from "../../../test/support/sim-scene.ts";
import { CriError } from "../../ports/cri.ts";
import { ContainerMetadataSchema } from "../../ports/gen/runtime/v1/api_pb.js";
import { crioWays, usualWays } from "../runtime-ways.ts";

test("a container whose creation times out is created again with the same restart count, whatever the runtime", async () => {
  for (const ways of [usualWays, crioWays]) {
    const scene = new Scene({}, ways);
    scene.node.add(podOf({ containers: [runs("app")] }));
    await scene.clock.run(60_000, () => scene.world.sandboxes.size > 0);
    scene.faults.begin({ slowness: 8000 }, 1_200_000);
    await scene.pass(1_600_000);
    const creations = scene.entries("CreateContainer").filter(({ kind }) => kind === "outcome");
    const lost = creations.filter(({ result }) => result === "unknown");
    assert.ok(lost.length > 1, `${lost.length} creations timed out`);
    const status = scene.status()?.containerStatuses?.[0];
    assert.ok(status?.state.running, JSON.stringify(status?.state));
    assert.equal(status.restartCount, 0);
    assert.equal(scene.container("app").config.metadata?.attempt, 0);
  }
});

test("actions that failed without the runtime are retried as soon as it responds", async () => {
  const scene = new Scene();
  const { node, world } = scene;
  node.add(podOf({ containers: [runs("goes")], terminationGracePeriodSeconds: 1 }, "uid-2", "other"));
  await scene.pass(5000);
  world.goDown();
  node.add(podOf({ containers: [runs("app")] }));
  node.remove("uid-2");
  await scene.pass(30_000);
  world.comeUp(() => false);
  await scene.pass(2500);
  assert.equal(scene.container("app").state, "running");
  assert.equal(world.running("uid-2", "goes"), undefined);
});

test("a runtime that returns before a listing has failed is noticed by the failed actions", async () => {
  for (const afterMs of [150, 260, 400, 450]) {
    const scene = new Scene();
    const { node, world } = scene;
    node.add(podOf({ containers: [runs("app")] }));
    await scene.pass(afterMs);
    world.goDown();
    await scene.pass(50);
    world.comeUp(() => false);
    await scene.pass(3000);
    assert.equal(world.running("uid-1", "app")?.state, "running", `${afterMs} ms`);
  }
});

test("a runtime that only answers listings causes no retry loop", async () => {
  const scene = new Scene();
  scene.node.add(podOf({ containers: [runs("app")] }));
  await scene.pass(1000);
  scene.faults.begin({ stopFails: 1 }, 120_000);
  scene.node.remove("uid-1");
  await scene.pass(120_000);
  const tries = scene.entries("StopContainer").filter(({ kind }) => kind === "action").length;
  assert.ok(tries > 7 && tries < 20, `${tries} tries`);
});

test("a runtime that forgets resizes over its restart changes nothing: the cgroup's values are reported", async () => {
  const scene = new Scene({}, crioWays);
  const { node, world } = scene;
  const asking = (cpu: string, memory: string) => {
    const amounts = { cpu, memory };
    return podOf({ containers: [runs("app", { resources: { requests: amounts, limits: amounts } })] });
  };
  node.add(asking("100m", "64Mi"));
  await scene.pass(5000);
  node.update(asking("300m", "128Mi"));
  await scene.pass(10_000);
  const wanted = { requests: { cpu: "300m", memory: "128Mi" }, limits: { cpu: "300m", memory: "128Mi" } };
  assert.deepEqual(scene.status()?.containerStatuses?.[0]?.resources, wanted);
  const updates = scene.entries("UpdateContainerResources").length;
  world.goDown();
  await scene.pass(2000);
  world.comeUp(() => false);
  await scene.pass(200_000);
  assert.equal(scene.container("app").reportedResources?.memoryLimitInBytes, 64n << 20n);
  assert.deepEqual(scene.status()?.containerStatuses?.[0]?.resources, wanted);
  node.kill();
  node.start();
  await scene.pass(100_000);
  assert.deepEqual(scene.status()?.containerStatuses?.[0]?.resources, wanted, "after a restart of podwright");
  assert.equal(scene.entries("UpdateContainerResources").length, updates);
  // Others may change a cgroup: that is reported, too.
  const container = scene.container("app");
  const present = container.resources;
  assert.ok(present);
  container.resources = { ...present, memoryLimitInBytes: 256n << 20n };
  await scene.pass(200_000);
  assert.equal(scene.status()?.containerStatuses?.[0]?.resources?.limits?.["memory"], "256Mi");
});

test("a static pod removed during its creation stays Pending to its end, unless it ran", async () => {
  const metadata = { annotations: { "kubernetes.io/config.source": "file" } };
  let before = 0;
  for (const ways of [usualWays, crioWays]) {
    for (let removedMs = 20; removedMs < 320; removedMs += 20) {
      const scene = new Scene({}, ways);
      const pod = podOf({ containers: [runs("app")] });
      scene.node.add({ ...pod, metadata: { ...pod.metadata, ...metadata } });
      await scene.pass(removedMs);
      scene.node.remove("uid-1");
      await scene.pass(10_000);
      assert.deepEqual(scene.entries("PodFinished").length, 1);
      if (scene.at("started app").length > 0) continue;
      before++;
      const phases = scene.entries("PodPhaseChanged").map(({ data }) => data?.["to"]);
      assert.deepEqual(phases, ["Pending"], `${ways.name}, removed after ${removedMs} ms`);
    }
  }
  assert.ok(before > 10, `${before} went before they ran`);
});

test("a container whose creation takes minutes delays the end of its pod for 10 s", async () => {
  for (const ways of [usualWays, crioWays]) {
    const scene = new Scene({}, ways);
    scene.node.add(podOf({ containers: [runs("app")], terminationGracePeriodSeconds: 3 }));
    await scene.clock.run(60_000, () => scene.world.sandboxes.size > 0);
    scene.faults.begin({ slowness: 5000 }, 600_000);
    await scene.clock.run(120_000, () => scene.entries("CreateContainer").length > 0);
    scene.faults.end({});
    await scene.pass(1000);
    scene.node.remove("uid-1");
    await scene.pass(9000);
    assert.deepEqual(scene.entries("PodFinished"), [], "it may still come");
    await scene.pass(3000);
    assert.equal(scene.entries("PodFinished").length, 1, ways.name);
    assert.deepEqual([scene.world.sandboxes.size, scene.world.containers.size], [0, 0], ways.name);
    await scene.pass(300_000);
    assert.deepEqual([scene.world.sandboxes.size, scene.world.containers.size], [0, 0], ways.name);
  }
});

test("a created container that never started is removed before its sandbox is stopped, which may take minutes", async () => {
  for (const ways of [usualWays, crioWays]) {
    const scene = new Scene({}, ways);
    const { node, world } = scene;
    node.add(podOf({ containers: [runs("app")], terminationGracePeriodSeconds: 5 }));
    await scene.pass(5000);
    const { config, sandboxId } = scene.container("app");
    const metadata = create(ContainerMetadataSchema, { name: "late", attempt: 0 });
    const labels = { ...config.labels, "io.kubernetes.container.name": "late" };
    const id = world.createContainer(sandboxId, { ...config, metadata, labels });
    const link = `/var/log/containers/web_default_late-${id}.log`;
    await node.files.symlink("/var/log/pods/default_web_uid-1/late/0.log", link);
    await scene.pass(2000);
    node.remove("uid-1");
    await scene.pass(6000);
    assert.deepEqual([world.sandboxes.size, world.containers.size], [0, 0], ways.name);
    const ends = scene
      .entries("StopContainer", "RemoveContainer", "StopPodSandbox")
      .filter(({ kind }) => kind === "action");
    assert.deepEqual(
      ends.slice(0, 3).map(({ what }) => what),
      ["StopContainer", "RemoveContainer", "StopPodSandbox"],
    );
    assert.equal(await node.files.readLink(link).catch(() => "gone"), "gone");
  }
});

test("a container from a request before its pod's resize gets the pod's new allocation", async () => {
  const withCpu = (cpu: string) => {
    const resources = { limits: { cpu }, requests: { cpu } };
    return podOf({ containers: [runs("app", { resources })] });
  };
  const scene = new Scene({}, crioWays);
  const { node, world } = scene;
  const createContainer = world.createContainer.bind(world);
  world.createContainer = (sandboxId, config) => {
    world.createContainer = createContainer;
    // Created after the caller gave up.
    createContainer(sandboxId, config, true);
    throw new CriError("DeadlineExceeded", "CreateContainer", "context deadline exceeded");
  };
  node.add(withCpu("100m"));
  await scene.clock.run(60_000, () => world.createContainer === createContainer);
  assert.equal(world.containers.size, 0);
  node.update(withCpu("200m"));
  await scene.pass(60_000);
  const { resources, config } = world.running("uid-1", "app") ?? {};
  assert.equal(String(config?.linux?.resources?.cpuShares), "102", "it is that of the first request");
  assert.deepEqual([String(resources?.cpuShares), String(resources?.cpuQuota)], ["204", "20000"]);
});
