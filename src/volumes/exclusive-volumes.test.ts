import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

const { signal } = new AbortController();
const root = "/var/lib/kubelet";
const made = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c" } }]);
const uid = podUid("0a1b2c3d-0000-4000-8000-000000000001");
const pod: Pod = { ...made, metadata: { ...made.metadata, uid } };
const next: Pod = { ...pod, metadata: { ...pod.metadata, ...podWith({}, { name: "q", uid: "v" }).metadata } };
const placeOf = (directory: string): string => `${root}/pods/${directory}/volumes/example.org~driver/pv-c`;
const place = placeOf(uid);

/** It does not know whose its volumes of earlier runs are. */
const driver: VolumePlugin = {
  name: "example.org~driver",
  followsObjects: false,
  owns: ({ persistentVolume }) => persistentVolume?.spec.csi !== undefined,
  prepare: (_pod, { name }) => ({
    ...{ name, type: "csi", hostPath: `/csi/${name}`, readOnly: false, own: true },
    isSetUp: async () => false,
    setUp: async () => {},
  }),
  reconstruct: async () => undefined,
};

/** A dead pod's directory has files in the target of an exclusive volume. */
async function withFilesLeft(at = place): Promise<VolumesUnderTest & { readonly mounts: SimMounts }> {
  const clock = new ManualClock();
  const [files, mounts] = [new MemoryFiles(clock), new SimMounts()];
  const loopDevices = new SimLoopDevices();
  const volumes = new VolumesUnderTest(root, {
    clock,
    files,
    mounts,
    volumeFiles: new SimVolumeFiles(files),
    loopDevices,
  });
  const storage = new TestStorage();
  storage.bind("c", { csi: { driver: "d", volumeHandle: "h" }, accessModes: ["ReadWriteOncePod"] });
  const cluster = { storage, node: new NodeVolumes(), byController: false, labels: () => ({}) };
  volumes.restart({ cluster }, [driver]);
  await files.makeDirectory(`${at}/mount`, 0o750);
  await files.write(`${at}/mount/file`, "left", 0o600);
  return Object.assign(volumes, { mounts });
}

/** Whether the volume is set up for the next pod at once. */
async function isFree({ manager }: VolumesUnderTest): Promise<boolean> {
  const abort = new AbortController();
  const mounted = manager.mount(next, needs, cause, abort.signal).then(
    () => true,
    () => false,
  );
  const waits = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
  const isMounted = await Promise.race([mounted, waits]);
  abort.abort(new Error("the test goes on"));
  await mounted;
  return isMounted;
}

test("files in a dead pod's unmounted directory do not keep an exclusive volume from the next pod", async () => {
  const volumes = await withFilesLeft();
  assert.equal(await isFree(volumes), false, "the other pod may still be running");
  await volumes.manager.release(podRef(pod), { cause }, signal);
  assert.equal(await isFree(volumes), true);
});

test("a dead pod whose exclusive volume is still mounted has it", async () => {
  const volumes = await withFilesLeft();
  await volumes.mounts.mount({ source: "/dev/sdb", target: `${place}/mount`, fileSystem: "ext4", options: [] });
  await volumes.manager.release(podRef(pod), { cause }, signal);
  assert.equal(await isFree(volumes), false);
});

test("a pod whose spec could not be stored has its exclusive volume, whatever its UID", async () => {
  assert.equal(await isFree(await withFilesLeft(placeOf("custom"))), false);
});

test("a copy of a pod's directory has no exclusive volume, unless that is mounted there", async () => {
  const at = placeOf(`${uid}.bak`);
  assert.equal(await isFree(await withFilesLeft(at)), true);
  const volumes = await withFilesLeft(at);
  await volumes.mounts.mount({ source: "/dev/sdb", target: `${at}/mount`, fileSystem: "ext4", options: [] });
  assert.equal(await isFree(volumes), false);
});
