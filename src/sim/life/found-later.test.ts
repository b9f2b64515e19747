/** What random lives found wrong with podwright since, played step by step: docs/simulator.md has the list. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { deaf, ends, podOf, Scene } from "../../../test/support/sim-scene.ts";
import type { Pod } from "../../api/pod.ts";

const asking = (name: string, cpu: string): Pod => {
  const resources = { limits: { cpu }, requests: { cpu } };
  return podOf({ terminationGracePeriodSeconds: 20, containers: [deaf(name, { resources })] }, name, name);
};

/** One pod goes, another waits for its room, and a third is to grow into that. */
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

test("what a pod waits for is not granted to a resize in the meantime", async () => {
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

test("a resize is granted as soon as nobody waits for its room any more", async () => {
  const scene = await crowded();
  await scene.pass(1000);
  assert.equal(scene.entries("ResizeStarted").length, 0);
  scene.node.remove("waits");
  assert.equal(scene.entries("ResizeStarted").length, 1);
});

test("a pod that comes back under its UID finds its room, also with a resize that waits for room", async () => {
  const scene = new Scene({ cpu: "1" });
  const { node, world } = scene;
  node.add(asking("back", "500m"));
  node.add(asking("grows", "100m"));
  await scene.pass(5000);
  node.remove("back");
  node.add(asking("back", "500m"));
  node.update(asking("grows", "600m"));
  await scene.pass(60_000);
  const quotas = ["back", "grows"].map((name) => String(world.running(name, name)?.resources?.cpuQuota));
  assert.deepEqual(quotas, ["50000", "10000"]);
  assert.deepEqual(scene.entries("ResizeStarted"), []);
});

test("a pod that changes while its predecessor of the same UID ends gets more only when there is room", async () => {
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
});

test("a pod that comes back under its UID and asks for more finds all of its room, also with a resize that waits for room", async () => {
  const scene = new Scene({ cpu: "1" });
  const { node } = scene;
  node.add(asking("back", "100m"));
  node.add(asking("grows", "100m"));
  await scene.pass(5000);
  node.remove("back");
  node.add(asking("back", "600m"));
  node.update(asking("grows", "600m"));
  await scene.pass(60_000);
  assert.deepEqual(scene.entries("ResizeStarted"), []);
  assert.equal(String(scene.world.running("back", "back")?.config.linux?.resources?.cpuQuota), "60000");
});

test("a resize that waits is granted as soon as a pod has ended, though that stays to be looked at", async () => {
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
  assert.equal(scene.entries("ResizeStarted").length, 1);
});
