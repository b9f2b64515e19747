import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec, podOf, root } from "../../test/support/csi-scene.ts";
import { FileError } from "../ports/files.ts";
import { simHashing } from "../sim/hashing.ts";
import { VolumePaths } from "../volumes/volume-paths.ts";
import { loadVolumeData } from "./volume-data.ts";

const { signal } = new AbortController();

const pods = `${root}/pods`;
const plugin = `${root}/plugins/kubernetes.io/csi`;
const records = {
  Filesystem: `${pods}/u1/volumes/kubernetes.io~csi/pv/vol_data.json`,
  Block: `${plugin}/volumeDevices/pv/data/vol_data.json`,
} as const;
const staged = `${plugin}/d/${simHashing.sha256("h")}`;

/** Files, without the directories that the next volumes use, too. */
async function filesOf(scene: CsiScene): Promise<readonly string[]> {
  return (await scene.tree()).filter((path) => !path.endsWith("/"));
}

async function published(volumeMode: "Filesystem" | "Block" = "Filesystem"): Promise<CsiScene> {
  const scene = new CsiScene();
  await scene.begin();
  await scene.setUp(podOf("u1"), csiSpec({ volumeMode }));
  return scene;
}

/** The next run of the kubelet, after the data file at a path was cut off. */
async function restarted(scene: CsiScene, record: string): Promise<void> {
  await scene.files.write(record, '{"driverName":"', 0o644);
  scene.calls.length = 0;
  await scene.begin();
}

for (const volumeMode of ["Filesystem", "Block"] as const) {
  test(`a volume whose record is damaged is unpublished before it is unstaged: ${volumeMode}`, async () => {
    const scene = await published(volumeMode);
    await scene.files.write(records[volumeMode], "", 0o644);
    scene.calls.length = 0;
    await scene.tearDown("u1");
    assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
    assert.deepEqual([await scene.mounts.list(), ...scene.inUse], [[]]);
  });
}

test("after a restart, a pod's volume with a damaged record is known by what is mounted", async () => {
  const scene = await published();
  await restarted(scene, records.Filesystem);
  scene.devices.tidy();
  await scene.devices.ended();
  assert.deepEqual([scene.effects, [...scene.inUse]], [[], ["kubernetes.io/csi/d^h"]]);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual([await scene.mounts.list(), await filesOf(scene)], [[], []]);
});

test("a pod's volume is known by the same PersistentVolume in another pod", async () => {
  const scene = await published();
  scene.capabilities = [];
  await scene.begin();
  await scene.setUp(podOf("u2"), csiSpec());
  await scene.files.write(`${staged}/vol_data.json`, "", 0o644);
  await restarted(scene, records.Filesystem);
  const { driver, handle } = (await scene.unknown.identify("u1", "pv")) ?? {};
  assert.deepEqual([driver, handle], ["d", "h"]);
});

test("a pod's volume that may be published from an unknown one is not taken for another on the same device", async () => {
  const scene = await published();
  const spec = { ...csiSpec({ csi: { driver: "d", volumeHandle: "other" } }), name: "pv-2" };
  await scene.setUp(podOf("u2"), spec);
  const record = `${plugin}/d/${simHashing.sha256("other")}/vol_data.json`;
  await scene.files.write(record, "", 0o644);
  await restarted(scene, `${pods}/u2/volumes/kubernetes.io~csi/pv-2/vol_data.json`);
  assert.equal(scene.publications.get("u2", "pv-2"), undefined);
  scene.listed = ["kubernetes.io/csi/d^other"];
  scene.storage.volumes.set("pv-2", { metadata: { name: "pv-2" }, spec: spec.persistentVolume?.spec ?? {} });
  await scene.unknown.lookAgain(signal);
  scene.devices.tidy();
  await scene.devices.ended();
  assert.deepEqual([scene.unknown.paths, scene.effects], [[], []]);
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.equal(scene.calls.at(-1)?.request["volumeId"], "other");
});

test("what is staged with a damaged record is unstaged after a pod whose stage of it failed definitely", async () => {
  const scene = await published();
  await scene.mounts.unmount(`${pods}/u1/volumes/kubernetes.io~csi/pv/mount`);
  await scene.files.removeTree(`${pods}/u1`, { isUnmounted: true });
  await restarted(scene, `${staged}/vol_data.json`);
  scene.fail("nodeStageVolume", "InvalidArgument");
  await assert.rejects(scene.setUp(podOf("u2"), csiSpec()), /InvalidArgument/);
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodeUnstageVolume"]);
  assert.deepEqual([await scene.mounts.list(), await filesOf(scene), ...scene.inUse], [[], []]);
});

test("a record on a damaged part of the disk keeps nothing from starting, and its volume is known otherwise", async () => {
  const scene = await published();
  const read = scene.files.read.bind(scene.files);
  const broken = new Set([`${staged}/vol_data.json`, records.Filesystem]);
  scene.files.read = async (path, maxBytes) => {
    if (broken.has(path)) throw new FileError("EIO", path, "EIO");
    return await read(path, maxBytes);
  };
  scene.calls.length = 0;
  await scene.begin();
  assert.deepEqual(scene.unknown.paths, [staged, `${pods}/u1/volumes/kubernetes.io~csi/pv`]);
  scene.listed = ["kubernetes.io/csi/d^h"];
  await scene.unknown.lookAgain(signal);
  assert.deepEqual(scene.unknown.paths, []);
  scene.devices.tidy();
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
});

test("what cannot be removed of an unknown volume, or is a file of somebody, stays, and nothing else does", async () => {
  const scene = await published();
  const other = `${plugin}/d/other`;
  await scene.files.makeDirectory(other, 0o750);
  await scene.files.write(`${other}/globalmount`, "data", 0o644);
  await scene.files.makeDirectory(`${plugin}/d/third/vol_data.json/in it`, 0o750);
  await scene.begin();
  assert.equal(new TextDecoder().decode(await scene.files.read(`${other}/globalmount`, 100)), "data");
  await scene.tearDown("u1");
  assert.equal(scene.effects.at(-1), "nodeUnstageVolume");
});

test("files in the target of an unknown volume that is not mounted are nobody's: they stay, and are named", async () => {
  const scene = await published();
  const directory = `${pods}/u1/volumes/kubernetes.io~csi/pv`;
  for (const { target } of await scene.mounts.list()) await scene.mounts.unmount(target);
  await scene.files.write(`${directory}/mount/file`, "data", 0o644);
  await scene.files.write(`${staged}/vol_data.json`, "", 0o644);
  await restarted(scene, `${directory}/vol_data.json`);
  const paths = new VolumePaths(root, "u1" as never);
  const found = { paths, name: "pv", mode: "Filesystem", mounts: [] } as const;
  assert.equal(await scene.plugin.reconstruct(found), undefined);
  await scene.files.remove(`${directory}/mount/file`);
  await scene.tearDown("u1");
  assert.deepEqual(await filesOf(scene), []);
});

test("a staged volume with a damaged record is known by its pods, or by what the Node lists", async () => {
  const scene = await published();
  await restarted(scene, `${staged}/vol_data.json`);
  scene.devices.tidy();
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);

  const orphan = await published();
  await orphan.files.removeTree(`${pods}/u1/volumes`, { isUnmounted: true });
  await restarted(orphan, `${staged}/vol_data.json`);
  assert.deepEqual(orphan.unknown.paths, [staged]);
  orphan.listed = ["kubernetes.io/csi/d^other", "kubernetes.io/csi/d^h"];
  await orphan.unknown.lookAgain(signal);
  assert.deepEqual(orphan.unknown.paths, []);
  orphan.devices.tidy();
  await orphan.devices.ended();
  assert.deepEqual(orphan.effects, ["nodeUnstageVolume"]);
});

test("a device with a damaged record is known by its PersistentVolume, and torn down", async () => {
  const scene = await published("Block");
  await restarted(scene, records.Block);
  assert.deepEqual([scene.unknown.paths, scene.unknown.mayBePublished], [[`${plugin}/volumeDevices/pv`], true]);
  await scene.unknown.lookAgain(signal);
  assert.equal(scene.unknown.paths.length, 1, "the API server does not have it now");
  scene.storage.volumes.set("pv", { metadata: { name: "pv" }, spec: { csi: { driver: "d", volumeHandle: "h" } } });
  await scene.unknown.lookAgain(signal);
  assert.deepEqual([scene.unknown.paths, [...scene.inUse]], [[], ["kubernetes.io/csi/d^h"]]);
  await scene.unknown.keepSources();
  scene.devices.tidy();
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual([await scene.mounts.list(), await filesOf(scene)], [[], []]);
});

test("what may be published from a volume that was found keeps it staged, even after its last known pod", async () => {
  const scene = await published();
  await scene.setUp(podOf("u2"), csiSpec());
  const mount = `${pods}/u1/volumes/kubernetes.io~csi/other/mount`;
  await scene.files.makeDirectory(mount, 0o750);
  await scene.mounts.mount({ source: "/dev/sdc", target: mount, fileSystem: "", options: [], device: "8:32" });
  await restarted(scene, `${pods}/u1/volumes/kubernetes.io~csi/other/vol_data.json`);
  assert.deepEqual(scene.entries.filter(({ what }) => what === "VolumeUnknown").length, 1);
  for (const uid of ["u2", "u1"]) await scene.tearDown(uid);
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnpublishVolume"]);
  await scene.mounts.unmount(mount);
  await scene.unknown.lookAgain(signal);
  assert.equal(scene.unknown.mayBePublished, false);
  await scene.unknown.keepSources();
  scene.devices.tidy();
  await scene.devices.ended();
  assert.equal(scene.effects.at(-1), "nodeUnstageVolume");
});

for (const volumeMode of ["Filesystem", "Block"] as const) {
  test(`after a power failure, what is left of a volume without a record is removed: ${volumeMode}`, async () => {
    const scene = await published(volumeMode);
    for (const { target } of await scene.mounts.list()) await scene.mounts.unmount(target);
    scene.mounts.clear();
    await scene.files.write(`${staged}/vol_data.json`, "", 0o644).catch(() => {});
    await restarted(scene, records[volumeMode]);
    assert.deepEqual(scene.unknown.paths, []);
    await scene.tearDown("u1");
    assert.deepEqual(scene.effects, []);
    scene.devices.tidy();
    await scene.devices.ended();
    assert.deepEqual(await filesOf(scene), []);
  });
}

test("two PersistentVolumes of one device share its stage, and each is torn down by its own files", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const [first, second] = [csiSpec({ volumeMode: "Block" }), { ...csiSpec({ volumeMode: "Block" }), name: "pv-2" }];
  await scene.setUp(podOf("u1"), first);
  await scene.setUp(podOf("u2"), second);
  const stagingPath = `${plugin}/volumeDevices/staging/pv`;
  const stages = scene.calls.flatMap(({ request }) => request["stagingTargetPath"] ?? []);
  assert.deepEqual(stages, [stagingPath, stagingPath, stagingPath]);
  scene.calls.length = 0;
  await scene.begin();
  scene.devices.tidy();
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume"]);
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.equal(scene.calls.at(-1)?.request["stagingTargetPath"], stagingPath);
  assert.deepEqual([await filesOf(scene), [...scene.inUse]], [[], []]);
});

test("a pod's inline volume is known by its spec, even if a PersistentVolume has its name", async () => {
  const scene = await published();
  await restarted(scene, records.Filesystem);
  scene.publications.removePod("u1");
  const pod = podOf("u1");
  scene.pods.set("u1", { ...pod, spec: { ...pod.spec, volumes: [{ name: "pv", csi: { driver: "inline.d" } }] } });
  const handle = scene.names.inlineHandle("u1", "pv");
  assert.deepEqual(await scene.unknown.identify("u1", "pv"), { driver: "inline.d", handle });
});

test("a volume that only has the name of another pod's is not taken for it", async () => {
  const scene = await published();
  scene.capabilities = [];
  const mount = `${pods}/u2/volumes/kubernetes.io~csi/pv/mount`;
  await scene.files.makeDirectory(mount, 0o750);
  await scene.mounts.mount({ source: "server:/x", target: mount, fileSystem: "nfs", options: [], device: "0:99" });
  assert.equal(await scene.unknown.identify("u2", "pv"), undefined);
});

test("what is left of a device without a record and without mounts is removed", async () => {
  const scene = await published("Block");
  await scene.tearDown("u1");
  await scene.files.makeDirectory(`${plugin}/volumeDevices/pv/data`, 0o750);
  await restarted(scene, records.Block);
  assert.deepEqual([scene.unknown.paths, await filesOf(scene)], [[], []]);
});

test("a device named as the directory of all staged devices is unstaged beside others", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const block = csiSpec({ volumeMode: "Block" });
  await scene.setUp(podOf("u1"), { ...block, name: "staging" });
  const other = `${plugin}/volumeDevices/staging/other`;
  await scene.mounts.mount({ source: "/dev/sdc", target: other, fileSystem: "", options: [] });
  await scene.tearDown("u1");
  assert.deepEqual([scene.effects.at(-1), [...scene.inUse]], ["nodeUnstageVolume", []]);
});

test("a mount of another file system and of another type keeps nothing staged", async () => {
  const scene = await published();
  const mount = `${pods}/u1/volumes/kubernetes.io~csi/other/mount`;
  await scene.files.makeDirectory(mount, 0o750);
  await scene.mounts.mount({ source: "server:/x", target: mount, fileSystem: "nfs4", options: [], device: "0:99" });
  await restarted(scene, `${pods}/u1/volumes/kubernetes.io~csi/other/vol_data.json`);
  assert.equal(scene.unknown.mayBePublished, true);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
});

test("beside an unknown mount, what the Node lists is cleared if its driver stages, and it is not staged", async () => {
  const scene = await published();
  const mount = `${pods}/u1/volumes/kubernetes.io~csi/other/mount`;
  await scene.files.makeDirectory(mount, 0o750);
  await scene.mounts.mount({ source: "server:/x", target: mount, fileSystem: "nfs4", options: [], device: "0:99" });
  await restarted(scene, `${pods}/u1/volumes/kubernetes.io~csi/other/vol_data.json`);
  await scene.files.makeDirectory(scene.names.staged("d", "lost"), 0o750);
  scene.listed = ["h", "earlier", "lost"].map((handle) => `kubernetes.io/csi/d^${handle}`);
  scene.listed = [...scene.listed, "kubernetes.io/csi/absent^h", "kubernetes.io/fc/d^h"];
  const cleared = (): readonly string[] => scene.listed.filter((unique) => scene.unknown.isCleared(unique));
  const known = ["kubernetes.io/csi/d^h"];
  assert.deepEqual(cleared(), known, "of another file system");
  scene.capabilities = [];
  await scene.drivers.add("d", "/csi.sock", "1.0.0");
  await scene.unknown.clearUnstaged(signal);
  assert.deepEqual(cleared(), known, "it may have published the others without a stage");
  scene.capabilities = [1];
  await scene.drivers.add("d", "/csi.sock", "1.0.1");
  await scene.unknown.clearUnstaged(signal);
  assert.deepEqual(cleared(), [...known, "kubernetes.io/csi/d^earlier"]);
});

test("beside an unknown device nothing is cleared: its driver may have staged it for any handle", async () => {
  const scene = await published("Block");
  await restarted(scene, records.Block);
  scene.listed = ["kubernetes.io/csi/d^earlier"];
  await scene.unknown.clearUnstaged(signal);
  assert.equal(scene.unknown.isCleared("kubernetes.io/csi/d^earlier"), false);
});

test("what was known only after its pod's teardown stays staged until it is unpublished", async () => {
  for (const volumeMode of ["Filesystem", "Block"] as const) {
    const scene = await published(volumeMode);
    await scene.files.write(`${staged}/vol_data.json`, "", 0o644).catch(() => {});
    await restarted(scene, records[volumeMode]);
    assert.equal(scene.unknown.mayBePublished, true);
    await scene.tearDown("u1");
    assert.deepEqual(scene.effects, [], "nobody knows whose it is");
    scene.storage.volumes.set("pv", { metadata: { name: "pv" }, spec: { csi: { driver: "d", volumeHandle: "h" } } });
    scene.listed = ["kubernetes.io/csi/d^h"];
    for (let look = 0; look < 2; look++) await scene.unknown.lookAgain(signal);
    await scene.unknown.keepSources();
    scene.devices.tidy();
    scene.unknown.releasePod("u1");
    await scene.devices.ended();
    assert.deepEqual([scene.effects, [...scene.inUse]], [[], ["kubernetes.io/csi/d^h"]]);
    await scene.tearDown("u1");
    assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
    assert.deepEqual([await scene.mounts.list(), ...scene.inUse], [[]]);
  }
});

test("a volume with a damaged record keeps the label that it is staged with", async () => {
  const spec = csiSpec({ accessModes: ["ReadWriteOncePod"] });
  const scene = new CsiScene();
  scene.driverSpec = { seLinuxMount: true, volumeLifecycleModes: ["Persistent"] };
  await scene.begin();
  const { hostPath } = await scene.setUp(podOf("u1"), { ...spec, seLinuxLabel: "u:r:t:s0" });
  for (const directory of [hostPath.slice(0, hostPath.lastIndexOf("/")), scene.names.staged("d", "h")]) {
    await scene.files.write(`${directory}/vol_data.json`, "", 0o644);
    await scene.begin();
    // The policy has changed meanwhile.
    const again = await scene.setUp(podOf("u1"), { ...spec, seLinuxLabel: "u:r:other:s0" });
    assert.equal(again.own, false);
    assert.equal((await loadVolumeData(scene.files, directory))?.seLinuxLabel, "u:r:t:s0");
  }
});
