import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiScene, csiSpec, podOf, root } from "../../test/support/csi-scene.ts";
import { FileError, type Files } from "../ports/files.ts";

const { signal } = new AbortController();
const pods = `${root}/pods`;
const plugin = `${root}/plugins/kubernetes.io/csi`;
const unique = "kubernetes.io/csi/d^h";

async function published(volumeMode: "Filesystem" | "Block"): Promise<CsiScene> {
  const scene = new CsiScene();
  await scene.begin();
  await scene.setUp(podOf("u1"), csiSpec({ volumeMode }));
  return scene;
}

/** The next run, in which the directories cannot be listed. */
async function damaged(scene: CsiScene, directories: readonly string[], code = "EUCLEAN"): Promise<Disposable> {
  const { files } = scene;
  const broken = new Set(directories);
  const list = files.list.bind(files);
  files.list = async (path) => {
    if (broken.has(path)) throw new FileError(code, path, `${code}: ${path}`);
    return await list(path);
  };
  scene.calls.length = 0;
  scene.listed = [unique];
  await scene.begin();
  return { [Symbol.dispose]: () => broken.clear() };
}

/** As the kubelet does once starting pods have had their time. */
async function tidy(scene: CsiScene): Promise<void> {
  await scene.unknown.lookAgain(signal);
  await scene.unknown.keepSources();
  scene.devices.tidy();
  await scene.unknown.clearUnstaged(signal);
  await scene.devices.ended();
}

/** Whether the Node goes on listing the volume as in use. */
function isListed(scene: CsiScene): boolean {
  return scene.inUse.has(unique) || (scene.unknown.mayBePublished && !scene.unknown.isCleared(unique));
}

const places = {
  "of a pod's volumes": `${pods}/u1/volumes/kubernetes.io~csi`,
  "of a pod's devices": `${pods}/u1/volumeDevices/kubernetes.io~csi`,
  "of all pods": pods,
  "of a driver": `${plugin}/d`,
  "of all drivers": plugin,
  "of all devices": `${plugin}/volumeDevices`,
  "of staged devices": `${plugin}/volumeDevices/staging`,
  "of a published device": `${plugin}/volumeDevices/publish/pv`,
};

for (const volumeMode of ["Filesystem", "Block"] as const) {
  for (const [what, directory] of Object.entries(places)) {
    test(`the directory ${what} cannot be listed at a start: no ${volumeMode} volume is detached, or unstaged too early`, async () => {
      const scene = await published(volumeMode);
      const broken = await damaged(scene, [directory]);
      await tidy(scene);
      assert.deepEqual([scene.effects, isListed(scene)], [[], true]);
      broken[Symbol.dispose]();
      await tidy(scene);
      assert.deepEqual([scene.unknown.paths, scene.effects, isListed(scene)], [[], [], true]);
      await scene.tearDown("u1");
      await tidy(scene);
      assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
      assert.deepEqual([await scene.mounts.list(), isListed(scene)], [[], false]);
    });
  }
}

test("what is staged in a directory that cannot be listed is listed as in use, and unstaged once it is known", async () => {
  const scene = await published("Filesystem");
  await scene.mounts.unmount(`${pods}/u1/volumes/kubernetes.io~csi/pv/mount`);
  await scene.files.removeTree(`${pods}/u1`, { isUnmounted: true });
  const broken = await damaged(scene, [plugin], "EIO");
  await tidy(scene);
  assert.deepEqual([scene.effects.includes("nodeUnstageVolume"), scene.unknown.paths], [true, [plugin]]);
  broken[Symbol.dispose]();
  await tidy(scene);
  assert.deepEqual([scene.unknown.paths, isListed(scene)], [[], false]);
});

test("a directory that cannot be listed is named once", async () => {
  const scene = await published("Filesystem");
  await damaged(scene, [`${plugin}/d`]);
  await tidy(scene);
  const notes = scene.entries.filter(({ what }) => what === "VolumeUnknown");
  assert.deepEqual(
    notes.map(({ message }) => message),
    [`a directory of volumes is damaged: nothing is detached that it could be: ${plugin}/d`],
  );
});

test("a device whose link cannot be made on a full disk is linked later, and torn down with its pod", async () => {
  const scene = await published("Block");
  const link = `${pods}/u1/volumeDevices/kubernetes.io~csi/pv`;
  await scene.files.remove(link);
  const symlink: Files["symlink"] = scene.files.symlink.bind(scene.files);
  scene.files.symlink = async (_target, path) => {
    throw new FileError("ENOSPC", path, "ENOSPC");
  };
  await damaged(scene, []);
  await scene.tearDown("u1");
  await tidy(scene);
  assert.deepEqual([scene.effects, isListed(scene)], [[], true]);
  scene.files.symlink = symlink;
  await tidy(scene);
  await scene.tearDown("u1");
  assert.deepEqual(scene.effects, ["nodeUnpublishVolume", "nodeUnstageVolume"]);
});

test("a copy of a pod's directory, as its owner makes to save data, holds no volume", async () => {
  const scene = await published("Filesystem");
  const record = "volumes/kubernetes.io~csi/pv/vol_data.json";
  const text = await scene.files.read(`${pods}/u1/${record}`, 10_000);
  const copy = `${pods}/7b2c44f0-27a9-4d0a-9b4e-0a1b2c3d4e5f.bak`;
  await scene.files.makeDirectory(`${copy}/volumes/kubernetes.io~csi/pv`, 0o750);
  await scene.files.write(`${copy}/${record}`, text, 0o644);
  await damaged(scene, []);
  await scene.tearDown("u1");
  await tidy(scene);
  assert.deepEqual([scene.effects, isListed(scene)], [["nodeUnpublishVolume", "nodeUnstageVolume"], false]);
});
