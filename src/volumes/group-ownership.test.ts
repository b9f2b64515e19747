import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { GroupAccess } from "../ports/volume-files.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const { signal } = new AbortController();
const storage = new TestStorage();
let clock: ManualClock;
let files: MemoryFiles;
let mounts: SimMounts;
let volumeFiles: SimVolumeFiles;
let volumes: VolumesUnderTest;

beforeEach(async () => {
  clock = new ManualClock();
  files = new MemoryFiles(clock);
  mounts = new SimMounts();
  volumeFiles = new SimVolumeFiles(files);
  volumes = new VolumesUnderTest("/var/lib/kubelet", {
    ...{ clock, files, mounts, volumeFiles, loopDevices: new SimLoopDevices() },
  });
  const cluster = { storage, node: new NodeVolumes(), byController: true, labels: () => ({}) };
  volumes.restart({ cluster });
  volumes.manager.connect(() => {});
  await files.makeDirectory("/disks/c", 0o755);
  await files.write("/disks/c/file", "", 0o600);
  await files.symlink("c", "/disks/link");
  storage.bind("c", { local: { path: "/disks/link" } });
});

function podOf(uid: string, fsGroup: number): Pod {
  const claimed = [{ name: "data", persistentVolumeClaim: { claimName: "c" } }];
  const pod = podOfVolumes(claimed, { securityContext: { fsGroup } });
  return { ...pod, metadata: { ...pod.metadata, uid: uid as PodUid } };
}

async function groups(): Promise<readonly (number | undefined)[]> {
  return ["/disks/c", "/disks/c/file"].map((path) => files.ownerOf(path)?.gid);
}

test("a local volume is mounted only when all its files have the pod's group, also after a failure", async (t) => {
  t.mock.method(files, "chown", async () => assert.fail("a disk that fails"), { times: 1 });
  const mounted = volumes.manager.mount(podOf("u", 2000), needs, cause, signal);
  await clock.advance(0);
  assert.deepEqual(await mounts.list(), []);
  await clock.advance(1_000);
  await mounted;
  assert.equal((await mounts.list()).length, 1);
  assert.deepEqual(await groups(), [2000, 2000]);
});

test("of pods with different groups that start together, the first sets the group of their local volume", async () => {
  const both = [podOf("u1", 2000), podOf("u2", 3000)].map((pod) => volumes.manager.mount(pod, needs, cause, signal));
  await clock.advance(0);
  await Promise.all(both);
  assert.deepEqual(await groups(), [2000, 2000]);
  assert.equal(volumes.entries.filter(({ what }) => what === "AlreadyMountedVolume").length, 1);
});

test("a change of a volume's group that takes long is reported after 30 s, then each minute with its progress", async (t) => {
  const done = Promise.withResolvers<number>();
  t.mock.method(volumeFiles, "giveToGroup", async (_root: string, { onProgress }: GroupAccess) => {
    onProgress?.(7_000);
    return await done.promise;
  });
  const mounted = volumes.manager.mount(podOf("uid-1", 2000), needs, cause, signal);
  const told = (): string[] =>
    volumes.entries.filter(({ what }) => what === "VolumePermissionChangeInProgress").map(({ message }) => message);
  await clock.advance(29_999);
  assert.deepEqual(told(), []);
  await clock.advance(60_001);
  const what = "Setting volume ownership for uid-1/volumes/kubernetes.io~local-volume/pv-c";
  assert.match(told()[0] ?? "", new RegExp(`^${what} is taking longer than expected, consider using OnRootMismatch`));
  assert.deepEqual(told().slice(1), [`${what}, processed 7000 files.`]);
  done.resolve(0);
  await mounted;
  await clock.advance(120_000);
  assert.equal(told().length, 2);
});
