import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { CsiScene, csiSpec, podOf, root } from "../../test/support/csi-scene.ts";
import { volumeDataText } from "./volume-data.ts";

const spec = csiSpec({ volumeMode: "Block" });
const devices = `${root}/plugins/kubernetes.io/csi/volumeDevices`;
const own = { staging: `${devices}/staging/pv`, publish: `${devices}/publish/pv`, dev: `${devices}/pv/dev` };
const emptied = [
  "plugins/kubernetes.io/csi/volumeDevices/publish/",
  "plugins/kubernetes.io/csi/volumeDevices/staging/",
];

const link = (uid: string): string => `${root}/pods/${uid}/volumeDevices/kubernetes.io~csi/pv`;

/** What is left of a pod that ended is its own directory, which others remove. */
async function left(): Promise<string[]> {
  return (await scene.tree()).filter((path) => !path.startsWith("pods/"));
}

let scene: CsiScene;
beforeEach(async () => {
  scene = new CsiScene();
  await scene.begin();
});

test("a block volume is staged once, published to each pod, bind-mounted, linked and held, and removed without a trace", async () => {
  const prepared = await scene.setUp(podOf("u1"), spec);
  await scene.setUp(podOf("u2"), spec);
  assert.equal(prepared.hostPath, link("u1"));
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume", "nodePublishVolume"]);
  const [stage, publish] = scene.calls.filter(({ method }) => method !== "nodeGetCapabilities");
  const capability = { accessMode: { mode: 1 }, accessType: { case: "block", value: {} } };
  assert.equal(stage?.request["stagingTargetPath"], own.staging);
  assert.deepEqual(stage?.request["volumeCapability"], capability);
  assert.equal(publish?.request["targetPath"], `${own.publish}/u1`);
  assert.equal(await scene.files.readLink(link("u1")), `${own.publish}/u1`);
  assert.deepEqual([...scene.loopDevices.held], [`${own.dev}/u1`, `${own.dev}/u2`]);
  const data = new TextDecoder().decode(await scene.files.read(`${devices}/pv/data/vol_data.json`, 1000));
  const attachmentId = scene.names.attachment("d", "h");
  const names = { driverName: "d", nodeName: "node1", specVolumeId: "pv", volumeHandle: "h" };
  assert.equal(data, volumeDataText({ attachmentId, ...names }));

  await scene.tearDown("u1");
  assert.deepEqual(scene.effects.slice(3), ["nodeUnpublishVolume"]);
  assert.deepEqual([...scene.loopDevices.held], [`${own.dev}/u2`]);
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects.slice(4), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await left(), emptied);
  assert.deepEqual(await scene.mounts.list(), []);
  assert.deepEqual([...scene.loopDevices.held, ...scene.inUse], []);
});

test("after a restart a block volume is confirmed by calls, and torn down from the state on disk", async () => {
  await scene.setUp(podOf("u1"), spec);
  await scene.setUp(podOf("u2"), spec);
  scene.calls.length = 0;
  await scene.begin();
  // Its pod was deleted meanwhile.
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume"], "the other pod's is still published");
  await scene.setUp(podOf("u1"), spec);
  assert.deepEqual(scene.effects.slice(1), ["nodeStageVolume", "nodePublishVolume"]);
  assert.equal((await scene.mounts.below(own.dev)).length, 1, "it is bound once");
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects.slice(3), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await left(), emptied);
});

test("a block volume of the Go kubelet is adopted and torn down", async () => {
  const { files, mounts, loopDevices, names } = scene;
  const device = "/dev/loop0";
  await files.makeDirectory(own.staging, 0o750);
  await files.makeDirectory(`${devices}/pv/data`, 0o750);
  const data =
    `{"attachmentID":"${names.attachment("d", "h")}","driverName":"d","nodeName":"node1",` +
    '"specVolID":"pv","volumeHandle":"h"}\n';
  await files.write(`${devices}/pv/data/vol_data.json`, data, 0o644);
  for (const directory of [own.publish, own.dev]) {
    await files.makeDirectory(directory, 0o750);
    await files.write(`${directory}/u1`, "", 0o640);
    await mounts.mount({ source: device, target: `${directory}/u1`, fileSystem: "devtmpfs", options: ["rw"] });
  }
  await loopDevices.hold(`${own.dev}/u1`);
  await files.makeDirectory(`${root}/pods/u1/volumeDevices/kubernetes.io~csi`, 0o750);
  await files.symlink(`${own.publish}/u1`, link("u1"));
  await scene.begin();
  assert.deepEqual([...scene.inUse], ["kubernetes.io/csi/d^h"]);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await left(), emptied);
  assert.deepEqual([await mounts.list(), ...loopDevices.held, ...scene.inUse], [[]]);
});

test("a volume published without a link in its pod is still found, and unpublished before it is unstaged", async () => {
  await scene.setUp(podOf("u1"), spec);
  await scene.files.remove(link("u1"));
  scene.calls.length = 0;
  await scene.begin();
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await left(), emptied);
});

test("a publish that failed definitely leaves nothing, one with an unknown outcome is unpublished", async () => {
  scene.fail("nodePublishVolume", "Internal");
  const failed = /^MapVolume\.MapPodDevice failed for volume "pv" : rpc error: code = Internal desc = by command$/u;
  await assert.rejects(scene.setUp(podOf("u1"), spec), { message: failed });
  assert.equal(await scene.files.stat(link("u1")), undefined);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects.slice(2), ["nodeUnstageVolume"]);

  scene.calls.length = 0;
  scene.fail("nodePublishVolume", "DeadlineExceeded", { afterwards: true });
  await assert.rejects(scene.setUp(podOf("u1"), spec));
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects.slice(2), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual(await left(), emptied);
});

test("a stage that fails is reported in upstream's words", async () => {
  scene.fail("nodeStageVolume", "Internal");
  const message = 'MapVolume.SetUpDevice failed for volume "pv" : rpc error: code = Internal desc = by command';
  await assert.rejects(scene.setUp(podOf("u1"), spec), { message });
  scene.drivers.remove("d");
  const client = "kubernetes.io/csi: blockMapper.SetUpDevice failed to get CSI client";
  const gone = "driver name d not found in the list of registered CSI drivers";
  await assert.rejects(scene.setUp(podOf("u1"), spec), {
    message: `MapVolume.SetUpDevice failed for volume "pv" : ${client}: ${gone}`,
  });
});

test("a block volume of a driver without staging also leaves nothing", async () => {
  scene.capabilities = [];
  await scene.setUp(podOf("u1"), spec);
  assert.deepEqual(scene.effects, ["nodePublishVolume"]);
  assert.equal(scene.calls.at(-1)?.request["stagingTargetPath"], undefined);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodePublishVolume", "nodeUnpublishVolume"]);
  assert.deepEqual(await left(), emptied);
});

for (const name of ["staging", "publish", "data"]) {
  test(`a block volume of a PersistentVolume named ${name} is found after a restart, and unstaged`, async () => {
    await scene.setUp(podOf("u1"), { ...spec, name });
    scene.calls.length = 0;
    await scene.begin();
    assert.deepEqual([scene.unknown.paths, scene.devices.volumes.length], [[], 1]);
    await scene.tearDown("u1");
    assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  });
}

test("what a driver has published although it reported a definite failure is unpublished before it is unstaged", async () => {
  scene.fail("nodePublishVolume", "Internal", { afterwards: true });
  await assert.rejects(scene.setUp(podOf("u1"), spec));
  assert.equal(await scene.files.readLink(link("u1")), `${own.publish}/u1`);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects.slice(2), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual([await left(), await scene.mounts.list()], [emptied, []]);
});
