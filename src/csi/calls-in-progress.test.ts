import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { CsiScene, csiSpec, noAttachment } from "../../test/support/csi-scene.ts";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { Emitter } from "../base/emitter.ts";

const podEnds = new Error("the pod ends");
const stops = new Error("podwright is stopping");
const pod: Pod = podWith({ containers: [{ name: "app" }] });
const { uid } = pod.metadata;
let scene: CsiScene;
let operation: AbortController;

beforeEach(async () => {
  scene = new CsiScene();
  await scene.begin();
  operation = new AbortController();
});

/** What has begun does what it can at once. */
async function settle(): Promise<void> {
  await scene.clock.advance(0);
}

test("a set-up that is called off during a publish ends with that call, and its unpublish follows", async () => {
  const publish = scene.hold("nodePublishVolume");
  const grouped = { ...pod, spec: { ...pod.spec, securityContext: { fsGroup: 1 } } };
  const spec = csiSpec({ accessModes: ["ReadWriteOnce"], csi: { driver: "d", volumeHandle: "h", fsType: "ext4" } });
  const setUp = assert.rejects(scene.prepare(grouped, spec).setUp(operation.signal), podEnds);
  await settle();
  operation.abort(podEnds);
  const removed = scene.tearDown(uid);
  await scene.clock.advance(60_000);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume"]);
  publish[Symbol.dispose]();
  await Promise.all([setUp, removed]);
  assert.deepEqual(scene.effects.slice(2), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await scene.mounts.list(), []);
});

test("a set-up that is called off during a stage makes no further call", async () => {
  const stage = scene.hold("nodeStageVolume");
  const setUp = assert.rejects(scene.prepare(pod, csiSpec()).setUp(operation.signal), podEnds);
  await settle();
  operation.abort(podEnds);
  await scene.clock.advance(60_000);
  stage[Symbol.dispose]();
  await setUp;
  assert.deepEqual(scene.effects, ["nodeStageVolume"]);
  await scene.tearDown(uid);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await scene.mounts.list(), []);
});

test("an upkeep that is called off ends with its driver's call, and not before", async () => {
  const volume = await scene.setUp(pod, csiSpec());
  const publish = scene.hold("nodePublishVolume");
  let hasEnded = false;
  const [upkeep] = volume.upkeeps ?? [];
  const ended = upkeep?.run(operation.signal, noAttachment, new Emitter()).catch(() => {});
  void ended?.then(() => (hasEnded = true));
  await settle();
  operation.abort(podEnds);
  await scene.clock.advance(60_000);
  assert.equal(hasEnded, false);
  publish[Symbol.dispose]();
  await ended;
  assert.deepEqual(scene.effects.slice(2), ["nodePublishVolume"]);
});

test("a stop of podwright cancels calls in progress, whose outcome stays unknown", async () => {
  using _publish = scene.hold("nodePublishVolume");
  const volume = scene.prepare(pod, csiSpec());
  const setUp = assert.rejects(volume.setUp(operation.signal), stops);
  await settle();
  scene.drivers.stop();
  operation.abort(stops);
  await setUp;
  assert.equal(await volume.isSetUp(), false);
  assert.equal(scene.publications.get(uid, "pv")?.state, "uncertain");
});

test("an expansion that a stop of podwright cancels has not failed: its claim says that it is in progress", async () => {
  using _expand = scene.hold("nodeExpandVolume");
  const setUp = assert.rejects(scene.prepare(pod, scene.grown()).setUp(operation.signal), stops);
  await settle();
  scene.drivers.stop();
  operation.abort(stops);
  await setUp;
  const { allocatedResourceStatuses, conditions } = scene.storage.claims.get("ns/c")?.status ?? {};
  assert.deepEqual([allocatedResourceStatuses, conditions], [{ storage: "NodeResizeInProgress" }, undefined]);
  const ends = scene.entries.filter(({ what, kind }) => what === "ExpandVolume" && kind === "outcome");
  assert.deepEqual(
    ends.map(({ result }) => result),
    ["unknown"],
  );
});
