import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { CsiScene, csiSpec, noAttachment, podOf } from "../../test/support/csi-scene.ts";
import { Emitter } from "../base/emitter.ts";
import type { PreparedVolume } from "../volumes/volume-plugin.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";

const { signal } = new AbortController();
const publish = "nodePublishVolume";
let scene: CsiScene;

beforeEach(async () => {
  scene = new CsiScene();
  await scene.begin();
});

/** A claim whose volume is that large, and that has 1Gi so far. */
function grownTo(storage: string): VolumeSpec {
  const { persistentVolume, ...spec } = csiSpec({ capacity: { storage } });
  assert.ok(persistentVolume);
  const claim = {
    metadata: { name: "c", namespace: "ns", uid: "uid-c", resourceVersion: "1" },
    spec: { volumeName: "pv", resources: { requests: { storage } } },
    status: { phase: "Bound", capacity: { storage: "1Gi" } },
  };
  scene.storage.volumes.set("pv", persistentVolume);
  scene.storage.claims.set("ns/c", claim);
  return { ...spec, persistentVolume, claim };
}

async function keepUp({ upkeeps = [] }: PreparedVolume, name: string): Promise<void> {
  await upkeeps.find((each) => each.name === name)?.run(signal, noAttachment, new Emitter());
}

/** What has begun does what it can within a minute. */
async function aMinute(): Promise<void> {
  await scene.clock.advance(60_000);
}

test("two pods have a volume published one after the other, and confirmed so after a restart", async () => {
  const pods = [podOf("a"), podOf("b")];
  for (const before of ["nodeStageVolume", "nodeStageVolume"]) {
    scene.calls.length = 0;
    const held = scene.hold(publish);
    const published = pods.map(async (pod) => await scene.setUp(pod, csiSpec()));
    await aMinute();
    assert.deepEqual(scene.effects, [before, publish]);
    held[Symbol.dispose]();
    await Promise.all(published);
    assert.deepEqual(scene.effects, [before, publish, publish]);
    await scene.begin();
  }
});

test("an expansion waits for the publish of another pod, whose set-up then finds it done", async () => {
  const first = await scene.setUp(podOf("a"), grownTo("1Gi"));
  const spec = grownTo("2Gi");
  scene.calls.length = 0;
  const held = scene.hold(publish);
  const second = scene.setUp(podOf("b"), spec);
  await aMinute();
  const expanded = keepUp(first, "expansion");
  await aMinute();
  assert.deepEqual(scene.effects, [publish]);
  held[Symbol.dispose]();
  await Promise.all([second, expanded]);
  assert.deepEqual(scene.effects, [publish, "nodeExpandVolume"]);
});

test("the publish of a pod waits for an expansion", async () => {
  const first = await scene.setUp(podOf("a"), grownTo("1Gi"));
  const spec = grownTo("2Gi");
  scene.calls.length = 0;
  const held = scene.hold("nodeExpandVolume");
  const expanded = keepUp(first, "expansion");
  await aMinute();
  const second = scene.setUp(podOf("b"), spec);
  await aMinute();
  assert.deepEqual(scene.effects, ["nodeExpandVolume"]);
  held[Symbol.dispose]();
  await Promise.all([second, expanded]);
  assert.deepEqual(scene.effects, ["nodeExpandVolume", publish]);
});

test("the unpublish of a pod waits for the publish of another one", async () => {
  await scene.setUp(podOf("a"), csiSpec());
  scene.calls.length = 0;
  const held = scene.hold(publish);
  const second = scene.setUp(podOf("b"), csiSpec());
  await aMinute();
  const removed = scene.tearDown("a");
  await aMinute();
  assert.deepEqual(scene.effects, [publish]);
  held[Symbol.dispose]();
  await Promise.all([second, removed]);
  assert.deepEqual(scene.effects, [publish, "nodeUnpublishVolume"]);
});

test("the call for a volume delays none of another one", async () => {
  using _held = scene.hold(publish);
  void scene.setUp(podOf("a"), csiSpec());
  const other = csiSpec({ csi: { driver: "d", volumeHandle: "other" } });
  void scene.setUp(podOf("b"), other);
  await scene.clock.advance(0);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodeStageVolume", publish, publish]);
  await scene.clock.advance(0);
});

test("a call that has hung until its deadline lets the next one go", async () => {
  const held = scene.hold(publish);
  const first = assert.rejects(scene.setUp(podOf("a"), csiSpec()), /DeadlineExceeded/u);
  await scene.clock.advance(0);
  const second = scene.setUp(podOf("b"), csiSpec());
  await scene.clock.advance(120_000);
  scene.fail(publish, "DeadlineExceeded");
  held[Symbol.dispose]();
  await Promise.all([first, second]);
  const states = ["a", "b"].map((uid) => scene.publications.get(uid, "pv")?.state);
  assert.deepEqual(states, ["uncertain", "published"]);
});

test("a pod that ends while it waits for another one's call ends at once, and nothing was called for it", async () => {
  const held = scene.hold(publish);
  const first = scene.setUp(podOf("a"), csiSpec());
  await scene.clock.advance(0);
  const ends = new AbortController();
  const second = assert.rejects(scene.prepare(podOf("b"), csiSpec()).setUp(ends.signal), /the pod ends/u);
  await aMinute();
  const wait = "its NodePublishVolume has been in progress for 60 s, and another call for it waits for the end of that";
  assert.equal(scene.drivers.turns.wait("d", "h"), wait);
  ends.abort(new Error("the pod ends"));
  await second;
  assert.equal(scene.publications.get("b", "pv")?.state, "absent");
  assert.equal(scene.drivers.turns.wait("d", "h"), undefined);
  held[Symbol.dispose]();
  await first;
  await scene.tearDown("b");
  assert.deepEqual(scene.effects, ["nodeStageVolume", publish]);
});
