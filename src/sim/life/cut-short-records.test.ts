import assert from "node:assert/strict";
import { test } from "node:test";
import { DriverScene, podWithVolumes } from "../../../test/support/sim-driver-scene.ts";

const volumes = "/var/lib/kubelet/pods/uid-a/volumes/kubernetes.io~csi";

/** A pod whose kubelet is killed at a step of its start, and that is gone when the next one starts. */
async function killedAt(step: number, volume: string): Promise<{ scene: DriverScene; isCutShort: boolean }> {
  const scene = new DriverScene();
  const { node, cluster, clock } = scene;
  node.start();
  await scene.pass(10_000);
  cluster.want(podWithVolumes("a", volume));
  node.killAfter(step, 60_000);
  clock.schedule("the pod to be deleted", 30_000, () => cluster.delete("uid-a", 0));
  await scene.pass(30_000);
  const found = await Promise.all(
    (await node.files.list(volumes)).map(async ({ name }) => await node.files.list(`${volumes}/${name}`)),
  );
  const isCutShort = found.flat().some(({ name }) => name.endsWith(".tmp"));
  if (isCutShort) await scene.pass(120_000);
  return { scene, isCutShort };
}

for (const volume of ["inline", "claim-1"]) {
  test(`a kill while the data file of a volume is written leaves nothing of its pod: ${volume}`, async () => {
    let cutShort = 0;
    for (let step = 1; step <= 300 && cutShort === 0; step++) {
      const { scene, isCutShort } = await killedAt(step, volume);
      if (!isCutShort) continue;
      cutShort++;
      assert.equal(await scene.node.files.stat("/var/lib/kubelet/pods/uid-a"), undefined);
      assert.deepEqual([...scene.node.drivers.volumes.published], []);
      assert.deepEqual(await scene.problems(), []);
    }
    assert.equal(cutShort, 1, "no kill fell into a write");
  });
}
