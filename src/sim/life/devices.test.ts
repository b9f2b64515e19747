import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DriverScene, podWithVolumes } from "../../../test/support/sim-driver-scene.ts";
import { diskDevice } from "../csi/claimed-volumes.ts";

const blocks = ["claim-5", "claim-6", "claim-9"] as const;
const [exclusive, disk] = ["claim-7", "claim-8"] as const;

/** Two pods with the same devices come and go. @param killAt podwright is killed at that call, 1 for the first */
async function comeAndGo(killAt?: number): Promise<{ readonly scene: DriverScene; readonly moments: number }> {
  const scene = new DriverScene(true);
  const moments = await scene.runTwo(blocks, killAt);
  for (const name of ["a", "b"]) scene.cluster.delete(`uid-${name}`);
  await scene.pass(60_000);
  return { scene, moments: moments() };
}

function published(scene: DriverScene): readonly string[] {
  return scene.node.drivers.volumes.targets.filter((path) => path.includes("/pv-7/"));
}

describe("a node with block volumes, disks, and volumes for one pod at a time", () => {
  test("continues after a kill at any call for a block volume, and leaves nothing mapped", async () => {
    const { scene: calm, moments } = await comeAndGo();
    assert.deepEqual(await calm.problems(), []);
    // Each call as it begins and as it ends: one volume staged, two published, for two pods.
    assert.ok(moments >= 20, `${moments} moments`);
    for (let killAt = 1; killAt <= moments; killAt++) {
      const { scene } = await comeAndGo(killAt);
      assert.equal(scene.node.lives, 2, `killed at ${killAt}`);
      assert.deepEqual(await scene.problems(), [], `killed at ${killAt}`);
      assert.deepEqual([...scene.node.loopDevices.held], [], `killed at ${killAt}`);
      assert.deepEqual(scene.node.drivers.volumes.targets, [], `killed at ${killAt}`);
    }
  });

  test("maps block volumes again after a reboot, before their containers start", async () => {
    const scene = new DriverScene(true);
    const { node, clock } = scene;
    await node.power.boot();
    scene.cluster.want(podWithVolumes("a", ...blocks, disk));
    await scene.pass(60_000);
    assert.ok(scene.runs("uid-a"));
    node.power.off("power lost");
    assert.equal(node.loopDevices.held.size, 0);
    node.power.bootAfter(5000);
    for (const driver of node.drivers.all) clock.schedule("a driver to start", 20_000, () => driver.start());
    await scene.pass(180_000);
    assert.ok(scene.runs("uid-a"));
    assert.equal(node.loopDevices.held.size, blocks.length);
    assert.deepEqual(await scene.problems(), []);
  });

  test("gives an exclusive volume to the next pod when the one before it has gone, also over a kill", async () => {
    for (const isKilled of [false, true]) {
      const scene = new DriverScene(true);
      scene.node.start();
      scene.cluster.want(podWithVolumes("a", exclusive));
      await scene.pass(30_000);
      scene.cluster.want(podWithVolumes("b", exclusive));
      await scene.pass(10_000);
      if (isKilled) {
        scene.node.kill();
        scene.node.start();
      }
      // Longer than a pod waits for its volumes: the upkeep of running pods must not publish it for one that waits.
      await scene.pass(400_000);
      assert.ok(scene.runs("uid-a") && !scene.runs("uid-b"));
      assert.equal(published(scene).length, 1);
      scene.cluster.delete("uid-a");
      await scene.pass(60_000);
      assert.ok(scene.runs("uid-b"));
      assert.deepEqual(await scene.problems(), []);
    }
  });

  test("formats an empty disk once, and none that cannot be read", async () => {
    const scene = new DriverScene(true);
    const { node } = scene;
    node.start();
    scene.cluster.want(podWithVolumes("a", disk));
    await scene.pass(30_000);
    assert.ok(scene.runs("uid-a"));
    scene.cluster.delete("uid-a");
    await scene.pass(30_000);
    assert.equal(node.mounts.isMounted(diskDevice), false);
    node.disks.isUnreadable = true;
    scene.cluster.want(podWithVolumes("b", disk));
    await scene.pass(30_000);
    assert.ok(!scene.runs("uid-b"));
    node.disks.isUnreadable = false;
    await scene.pass(200_000);
    assert.ok(scene.runs("uid-b"));
    assert.equal(scene.done("FormatDisk").length, 1);
    assert.deepEqual(await scene.problems(), []);
  });
});
