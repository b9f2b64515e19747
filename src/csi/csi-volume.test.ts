import assert from "node:assert/strict";
import { test } from "node:test";
import { Emitter } from "../base/emitter.ts";
import { CsiScene, csiSpec, noAttachment, podOf } from "../../test/support/csi-scene.ts";
import type { Pod } from "../api/pod.ts";
import { loadVolumeData } from "./volume-data.ts";
import type { PreparedVolume } from "../volumes/volume-plugin.ts";

const label = "system_u:object_r:container_file_t:s0:c1,c2";
const labelled = csiSpec({ accessModes: ["ReadWriteOncePod"], mountOptions: ["noatime"] });
const asking = { seLinuxMount: true, volumeLifecycleModes: ["Persistent"] };

/** The mount flags of the driver's calls, each in the order of its calls. */
function flagsOf({ calls }: CsiScene): unknown[] {
  return calls.flatMap(({ method, request }) => {
    const { accessType } = (request["volumeCapability"] ?? {}) as { accessType?: { value: { mountFlags: unknown } } };
    return accessType === undefined ? [] : [[method, accessType.value.mountFlags]];
  });
}

test("what one version of a driver staged is not unstaged under a pod that came with one without staging", async () => {
  const scene = new CsiScene();
  await scene.begin();
  await scene.setUp(podOf("u1"), csiSpec());
  scene.capabilities = [];
  scene.calls.length = 0;
  await scene.begin();
  await scene.setUp(podOf("u2"), csiSpec());
  await scene.tearDown("u1");
  scene.devices.tidy();
  scene.capabilities = [1];
  await scene.drivers.add("d", "/csi.sock", "1.0.1");
  await scene.clock.advance(200_000);
  assert.deepEqual([scene.effects, scene.inUse.size], [["nodePublishVolume", "nodeUnpublishVolume"], 1]);
  await scene.tearDown("u2");
  assert.deepEqual(scene.effects.slice(2), ["nodeUnpublishVolume", "nodeUnstageVolume"]);
  assert.deepEqual([await scene.mounts.list(), ...scene.inUse], [[]]);
});

async function publishAgain({ upkeeps = [] }: PreparedVolume): Promise<void> {
  await upkeeps[0]?.run(new AbortController().signal, noAttachment, new Emitter());
}

/** A volume whose files get its pod's group. */
async function groupedVolume(scene: CsiScene): Promise<PreparedVolume> {
  await scene.begin();
  const pod = podOf("u1");
  const grouped: Pod = { ...pod, spec: { ...pod.spec, securityContext: { fsGroup: 2000 } } };
  const csi = { driver: "d", volumeHandle: "h", fsType: "ext4" };
  return await scene.setUp(grouped, csiSpec({ csi, accessModes: ["ReadWriteOnce"] }));
}

test("storage that refuses groups is noted with the set-up, not each time that the volume is republished", async () => {
  const scene = new CsiScene();
  scene.refusesGroups = true;
  const prepared = await groupedVolume(scene);
  await publishAgain(prepared);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume", "nodePublishVolume"]);
  assert.equal(scene.entries.filter(({ what }) => what === "VolumeGroupRefused").length, 1);
});

test("republishing gives the pod's group what the driver has written since", async () => {
  const scene = new CsiScene();
  const prepared = await groupedVolume(scene);
  const token = `${prepared.hostPath}/token`;
  await scene.files.write(token, "renewed", 0o600);
  await publishAgain(prepared);
  assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume", "nodePublishVolume"]);
  assert.equal(scene.files.ownerOf(token)?.gid, 2000);
});

test("a claim that two volumes of a pod lead to is republished once", async () => {
  const scene = new CsiScene();
  scene.driverSpec = { requiresRepublish: true, volumeLifecycleModes: ["Persistent"] };
  await scene.begin();
  const both = [await scene.setUp(podOf("u1"), csiSpec())];
  both.push(await scene.setUp(podOf("u1"), { ...csiSpec(), podVolume: "w" }));
  await scene.clock.advance(60_000);
  scene.calls.length = 0;
  const due = both.flatMap(({ upkeeps = [] }) => upkeeps.filter(({ name }) => name === "publication"));
  assert.deepEqual(
    due.map((upkeep) => upkeep.isDue()),
    [true, true],
  );
  await Promise.all(due.map((upkeep) => upkeep.run(new AbortController().signal, noAttachment, new Emitter())));
  assert.deepEqual(scene.effects, ["nodePublishVolume"]);
});

test("a place where something is mounted is not accessed before the driver is called", async () => {
  for (const mode of ["Filesystem", "Block"] as const) {
    const scene = new CsiScene();
    await scene.begin();
    await scene.setUp(podOf("u1"), csiSpec({ volumeMode: mode }));
    const place = mode === "Block" ? scene.names.blockStaging("pv") : `${scene.names.staged("d", "h")}/globalmount`;
    if (mode === "Block") await scene.mounts.mount({ source: "/d", target: place, fileSystem: "", options: ["bind"] });
    assert.equal((await scene.mounts.below(place)).length, 1);
    await scene.begin();
    const accessed: string[] = [];
    const makeDirectory = scene.files.makeDirectory.bind(scene.files);
    scene.files.makeDirectory = async (path, permissions) => {
      accessed.push(path);
      await makeDirectory(path, permissions);
    };
    scene.calls.length = 0;
    await scene.setUp(podOf("u1"), csiSpec({ volumeMode: mode }));
    assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume"]);
    assert.ok(accessed.length > 0);
    assert.ok(!accessed.includes(place));
  }
});

test("files that a driver leaves in the staging directory stay, and no start unstages the volume again", async () => {
  for (const mode of ["Filesystem", "Block"] as const) {
    const scene = new CsiScene();
    await scene.begin();
    await scene.setUp(podOf("u1"), csiSpec({ volumeMode: mode }));
    const place = mode === "Block" ? scene.names.blockStaging("pv") : `${scene.names.staged("d", "h")}/globalmount`;
    await scene.files.write(`${place}/driver.json`, "{}", 0o600);
    await scene.tearDown("u1");
    assert.ok(scene.effects.includes("nodeUnstageVolume"));
    scene.calls.length = 0;
    await scene.begin();
    scene.devices.tidy();
    await scene.clock.advance(600_000);
    assert.deepEqual([scene.effects, ...scene.inUse], [[]]);
    assert.ok(await scene.files.stat(`${place}/driver.json`));
  }
});

test("republishing a block volume repeats no Events", async () => {
  const scene = new CsiScene();
  await scene.begin();
  const prepared = await scene.setUp(podOf("u1"), csiSpec({ volumeMode: "Block" }));
  const told = (): number => scene.entries.filter(({ what }) => what === "SuccessfulMountVolume").length;
  const before = told();
  await publishAgain(prepared);
  assert.deepEqual([scene.effects.length, before, told()], [3, 2, 2]);
});

test("a driver that first refuses to unpublish a volume, and then does not answer, is named", async () => {
  const scene = new CsiScene();
  await scene.begin();
  await scene.setUp(podOf("u1"), csiSpec());
  scene.fail("nodeUnpublishVolume", "Internal");
  const ending = scene.tearDown("u1");
  await scene.clock.advance(400);
  {
    using _hangs = scene.hold("nodeUnpublishVolume");
    await scene.clock.advance(40_000);
    assert.deepEqual(
      scene.waits.hanging.map(({ volume, driver, operation }) => [volume, driver, operation]),
      [["pv", "d", "tear down"]],
    );
  }
  await scene.clock.advance(1000);
  await ending;
  assert.deepEqual(scene.waits.hanging, []);
});

test("a volume is staged and published with its label, if its driver asks for it, and then not labelled anew", async () => {
  const spec = { ...labelled, seLinuxLabel: label };
  for (const driverSpec of [undefined, { ...asking, seLinuxMount: false }, asking]) {
    const scene = new CsiScene();
    scene.driverSpec = driverSpec;
    await scene.begin();
    const { own, hostPath } = await scene.setUp(podOf("u1"), spec);
    const isLabelled = driverSpec === asking;
    const flags = isLabelled ? ["noatime", `context="${label}"`] : ["noatime"];
    assert.deepEqual(flagsOf(scene), [
      ["nodeStageVolume", flags],
      ["nodePublishVolume", flags],
    ]);
    assert.equal(own, !isLabelled);
    for (const directory of [scene.names.staged("d", "h"), hostPath.slice(0, hostPath.lastIndexOf("/"))]) {
      const data = await loadVolumeData(scene.files, directory);
      assert.equal(data?.seLinuxLabel, isLabelled ? label : undefined);
    }
  }
});

test("after a restart a mounted volume keeps what was decided about its label", async () => {
  const scene = new CsiScene();
  for (const isLabelled of [true, false]) {
    scene.driverSpec = isLabelled ? asking : { ...asking, seLinuxMount: false };
    await scene.begin();
    await scene.setUp(podOf("u1"), { ...labelled, seLinuxLabel: label });
    const flags = flagsOf(scene);
    scene.calls.length = 0;
    scene.driverSpec = isLabelled ? { ...asking, seLinuxMount: false } : asking;
    await scene.begin();
    const again = await scene.setUp(podOf("u1"), { ...labelled, seLinuxLabel: "system_u:object_r:other_t:s0" });
    assert.deepEqual([flagsOf(scene), again.own], [flags, !isLabelled]);
    assert.deepEqual(scene.effects, ["nodeStageVolume", "nodePublishVolume"]);
    await scene.tearDown("u1");
    assert.deepEqual(await scene.mounts.list(), []);
    scene.calls.length = 0;
  }
});

test("a volume that is staged with the label of an earlier pod is unstaged before one with another label has it", async () => {
  const scene = new CsiScene();
  scene.driverSpec = asking;
  await scene.begin();
  await scene.setUp(podOf("u1"), { ...labelled, seLinuxLabel: label });
  // The first pod has ended, and it could not be unstaged yet.
  scene.fail("nodeUnstageVolume", "Internal");
  const ending = scene.tearDown("u1");
  await scene.clock.advance(100);
  const waits = scene.setUp(podOf("u2"), { ...labelled, seLinuxLabel: "u:r:t:s0" });
  await assert.rejects(waits, {
    message:
      'MountVolume.MountDevice failed for volume "pv" : waiting for unmount of volume "kubernetes.io/csi/d^h", ' +
      "because it is already mounted to a different pod with a different SELinux label",
  });
  await scene.clock.advance(1000);
  await ending;
  await scene.setUp(podOf("u2"), { ...labelled, seLinuxLabel: "u:r:t:s0" });
  assert.deepEqual(scene.effects.slice(2), [
    ...["nodeUnpublishVolume", "nodeUnstageVolume", "nodeUnstageVolume"],
    ...["nodeStageVolume", "nodePublishVolume"],
  ]);
  assert.deepEqual(flagsOf(scene).at(-1), ["nodePublishVolume", ["noatime", 'context="u:r:t:s0"']]);
});
