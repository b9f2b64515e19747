import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { CsiScene, csiSpec, podOf } from "../../test/support/csi-scene.ts";

let scene: CsiScene;
beforeEach(async () => {
  scene = new CsiScene();
  await scene.begin();
});

/** The driver's registrar has been replaced, as with its pod. */
async function replaceRegistration(): Promise<void> {
  await scene.drivers.add("d", "/csi.sock", "1.0.1");
}

test("a volume is expanded by the registration that has come while it was published", async () => {
  const spec = scene.grown();
  const publish = scene.hold("nodePublishVolume");
  const setUp = scene.setUp(podOf("a"), spec);
  await scene.clock.advance(0);
  await replaceRegistration();
  publish[Symbol.dispose]();
  await setUp;
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume", "nodeExpandVolume"]);
  const { capacity, conditions } = scene.storage.claims.get("ns/c")?.status ?? {};
  assert.deepEqual([capacity, conditions], [{ storage: "2Gi" }, []]);
});

test("a volume that has not grown is set up, although its driver has left while it was published", async () => {
  const publish = scene.hold("nodePublishVolume");
  const setUp = scene.setUp(podOf("a"), csiSpec());
  await scene.clock.advance(0);
  scene.drivers.remove("d");
  publish[Symbol.dispose]();
  assert.equal(await (await setUp).isSetUp(), true);
});

test("an expansion whose driver has left while the volume was published waits for it, and has not failed", async () => {
  const spec = scene.grown();
  const publish = scene.hold("nodePublishVolume");
  const setUp = scene.setUp(podOf("a"), spec);
  await scene.clock.advance(0);
  scene.drivers.remove("d");
  publish[Symbol.dispose]();
  await assert.rejects(setUp, /while expanding volume .* driver name d not found/u);
  assert.deepEqual(scene.storage.patches, []);
});

test("a pod whose turn to stage a volume comes after a new registration has that one's call", async () => {
  const stage = scene.hold("nodeStageVolume");
  scene.fail("nodeStageVolume", "Internal");
  const first = assert.rejects(scene.setUp(podOf("a"), csiSpec()), /code = Internal/u);
  const second = scene.setUp(podOf("b"), csiSpec());
  await scene.clock.advance(0);
  await replaceRegistration();
  stage[Symbol.dispose]();
  await Promise.all([first, second]);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodeStageVolume", "nodePublishVolume"]);
});
