import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";

const made = podWith({ containers: [{ name: "app" }] });
const uid = podUid("u1");
const pod: Pod = { ...made, metadata: { ...made.metadata, uid } };
const none: ReadonlySet<string> = new Set();

/** A PersistentVolume of a driver. */
function volume(name: string, driver: string, volumeHandle: string): VolumeSpec {
  const spec = csiSpec({ csi: { driver, volumeHandle } });
  const persistentVolume = spec.persistentVolume && { ...spec.persistentVolume, metadata: { name } };
  return { ...spec, ...(persistentVolume && { persistentVolume }), name };
}

/** The pod has volumes of two drivers, staged or not, and one driver leaves. */
async function withDriverAway(specs: readonly VolumeSpec[], capabilities: readonly number[] = [1]): Promise<CsiScene> {
  const scene = new CsiScene();
  scene.capabilities = capabilities;
  await scene.begin();
  await scene.drivers.add("e", "/csi-e.sock", "1.0.0");
  for (const spec of specs) {
    const { driver = "", volumeHandle = "" } = spec.persistentVolume?.spec.csi ?? {};
    scene.node.use(`kubernetes.io/csi/${driver}^${volumeHandle}`, uid);
    await scene.setUp(pod, spec);
  }
  scene.drivers.remove("e");
  return scene;
}

test("a volume leaves the Node's list by its own unpublish and unstage, whatever the pod's others wait for", async () => {
  for (const capabilities of [[1], []]) {
    const scene = await withDriverAway([volume("pv", "d", "h"), volume("far", "e", "f")], capabilities);
    const ending = scene.tearDown(uid);
    await scene.clock.advance(10_000);
    assert.deepEqual([...scene.inUse], ["kubernetes.io/csi/e^f"]);
    await scene.drivers.add("e", "/csi-e.sock", "1.0.0");
    await scene.clock.advance(0);
    await ending;
    assert.deepEqual([...scene.inUse], []);
  }
});

test("a volume whose unpublish has no certain outcome stays on the Node's list", async () => {
  const scene = await withDriverAway([volume("pv", "d", "h")], []);
  scene.fail("nodeUnpublishVolume", "DeadlineExceeded", { afterwards: true });
  const ending = scene.tearDown(uid);
  await scene.clock.advance(400);
  assert.deepEqual([...scene.inUse], ["kubernetes.io/csi/d^h"]);
  await scene.clock.advance(1000);
  await ending;
  assert.deepEqual([...scene.inUse], []);
});

test("a volume that a pod has by two PersistentVolumes stays on the list until both are unpublished", async () => {
  const scene = await withDriverAway([volume("pv", "d", "h"), volume("twin", "d", "h")], []);
  scene.fail("nodeUnpublishVolume", "Internal");
  const ending = scene.tearDown(uid);
  await scene.clock.advance(400);
  assert.deepEqual([scene.publications.of(uid).length, [...scene.inUse]], [1, ["kubernetes.io/csi/d^h"]]);
  await scene.clock.advance(1000);
  await ending;
  assert.deepEqual([...scene.inUse], []);
});

test("a volume that was staged and never published is unstaged once its pod's set-ups have ended", async () => {
  const scene = await withDriverAway([volume("far", "e", "f")]);
  scene.node.use("kubernetes.io/csi/d^h", uid);
  scene.fail("nodePublishVolume", "Internal");
  await assert.rejects(scene.setUp(pod, volume("pv", "d", "h")));
  scene.calls.length = 0;
  scene.plugin.setUpsEnded(uid, new Set(["kubernetes.io~csi/far"]));
  await scene.devices.ended();
  assert.deepEqual([scene.effects, [...scene.inUse]], [["nodeUnstageVolume"], ["kubernetes.io/csi/e^f"]]);
  assert.deepEqual(
    scene.publications.of(uid).map(({ name }) => name),
    ["far"],
  );
});

test("what is or may be published, or is on the disk, is the pod's until its teardown", async () => {
  const scene = await withDriverAway([volume("far", "e", "f")]);
  scene.fail("nodePublishVolume", "DeadlineExceeded");
  await assert.rejects(scene.setUp(pod, volume("pv", "d", "h")));
  scene.prepare(pod, volume("saved", "d", "s"));
  scene.node.use("kubernetes.io/csi/d^s", uid);
  const before = [...scene.inUse];
  scene.plugin.setUpsEnded(uid, new Set(["kubernetes.io~csi/saved"]));
  await scene.devices.ended();
  assert.deepEqual([...scene.inUse], before);
  assert.deepEqual(
    scene.publications.of(uid).map(({ name }) => name),
    ["far", "pv", "saved"],
  );
  scene.plugin.setUpsEnded(uid, none);
  assert.deepEqual([...scene.inUse], ["kubernetes.io/csi/d^h", "kubernetes.io/csi/e^f"]);
});
