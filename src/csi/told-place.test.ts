import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import { causeOf } from "../base/errors.ts";
import { AwaitedError } from "../volumes/awaited-error.ts";

/** A place that can be another kubelet's. */
class Place {
  problem: string | undefined;
  needed = 0;
  #taken = Promise.withResolvers<void>();

  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  leave(): void {
    this.#taken = Promise.withResolvers();
    this.problem = "another node agent has started at /told (pid 7: kubelet)";
  }

  need(): void {
    this.needed++;
  }

  take(): void {
    this.problem = undefined;
    this.#taken.resolve();
  }
}

const app = { containers: [{ name: "app" }] };

for (const volumeMode of ["Filesystem", "Block"] as const) {
  test(`while the place is another kubelet's, a ${volumeMode} volume waits for it, and those of ended pods are released`, async () => {
    const [scene, place] = [new CsiScene("/told"), new Place()];
    scene.place = place;
    await scene.begin();
    const spec = csiSpec({ volumeMode });
    const old = podWith(app);
    await scene.setUp(old, spec);
    scene.calls.length = 0;
    place.leave();
    const error = await scene.setUp(podWith({ ...app }, { uid: "new" }), spec).catch((reason: unknown) => reason);
    assert.match(String(error), /CSI volumes wait .*: another node agent has started at \/told \(pid 7: kubelet\)/u);
    const awaited = causeOf(error, AwaitedError);
    assert.ok(awaited);
    assert.equal(place.needed, 0, "the driver is there");
    assert.deepEqual(scene.effects, []);
    await scene.tearDown(old.metadata.uid);
    assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
    place.take();
    await awaited.until;
    await scene.setUp(podWith({ ...app }, { uid: "new" }), spec);
    assert.deepEqual(scene.effects.slice(2), ["nodeStageVolume", "nodePublishVolume"]);
  });
}

test("without a cluster a volume of a driver without a CSIDriver waits for it, and the error names both", async () => {
  const [scene, place] = [new CsiScene("/told"), new Place()];
  const { signal } = new AbortController();
  await scene.begin();
  assert.ok(await scene.plugin.attachment(csiSpec({}), signal), "a cluster attaches it");
  scene.place = place;
  await scene.begin();
  const message = "driver d has no CSIDriver object: give 'podwright run' its document, with attachRequired: false";
  await assert.rejects(scene.plugin.attachment(csiSpec({}), signal), { name: "AwaitedError", message });
  scene.drivers.remove("d");
  const unregistered = `${message}, and the driver is not registered on this node`;
  await assert.rejects(scene.plugin.attachment(csiSpec({}), signal), { message: unregistered });
  scene.driverSpec = { attachRequired: false };
  await scene.begin();
  assert.equal(await scene.plugin.attachment(csiSpec({}), signal), undefined);
});

test("what waits for a driver that is not registered needs the place: also volumes of pods that are wanted no more", async () => {
  const [scene, place] = [new CsiScene("/told"), new Place()];
  scene.place = place;
  await scene.begin();
  const old = podWith(app);
  await scene.setUp(old, csiSpec({}));
  assert.equal(place.needed, 0);
  scene.drivers.remove("d");
  await assert.rejects(scene.setUp(podWith({ ...app }, { uid: "new" }), csiSpec({})), /driver name d not found/u);
  const before = place.needed;
  assert.ok(before > 0);
  const end = scene.tearDown(old.metadata.uid);
  await scene.clock.advance(1000);
  assert.ok(place.needed > before);
  await scene.drivers.add("d", "/csi.sock", "1.0.0");
  await scene.clock.advance(60_000);
  await end;
});
