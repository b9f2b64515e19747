import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemLoopDevices } from "../linux/files/loop-devices.ts";
import { systemMounts } from "../linux/files/mounts.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { needsRoot, testDirectory } from "../linux/processes/testing.ts";
import { systemVolumeFiles } from "../linux/files/volume-files.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import { podRef } from "../runtime/pod-ref.ts";

const signal = new AbortController().signal;

/** A loop device over a new file, in a node whose claim `c` it is; nothing of it stays. */
async function withDisk(
  work: (volumes: VolumesUnderTest, device: string, begin: () => void) => Promise<void>,
): Promise<void> {
  using directory = testDirectory();
  const file = `${realpathSync(directory.path)}/disk`;
  writeFileSync(file, "");
  truncateSync(file, 16 << 20);
  const device = execFileSync("losetup", ["--find", "--show", file], { encoding: "utf8" }).trim();
  const root = `${realpathSync(directory.path)}/kubelet`;
  const volumes = new VolumesUnderTest(root, {
    ...{ clock: systemClock, files: systemFiles, mounts: systemMounts, processes: systemProcesses },
    ...{ volumeFiles: systemVolumeFiles, loopDevices: systemLoopDevices },
  });
  const storage = new TestStorage();
  storage.bind("c", { local: { path: device, fsType: "ext4" }, mountOptions: ["noatime"] });
  const begin = (): void => {
    volumes.restart({ cluster: { storage, node: new NodeVolumes(), byController: true, labels: () => ({}) } });
  };
  try {
    begin();
    await work(volumes, device, begin);
  } finally {
    const left = (await systemMounts.list()).filter(({ target }) => target.startsWith(`${root}/`));
    for (const { target } of left.toReversed()) await systemMounts.unmount(target, { lazy: true });
    execFileSync("losetup", ["--detach", device]);
  }
}

function podOf(uid: string, readOnly = false): Pod {
  const claim = { persistentVolumeClaim: { claimName: "c", readOnly } };
  const pod = podOfVolumes([{ name: "disk", ...claim }], { securityContext: { fsGroup: 4711 } });
  return { ...pod, metadata: { ...pod.metadata, name: uid, uid: podUid(uid) } };
}

async function mountsOf(device: string): Promise<string[]> {
  return (await systemMounts.list()).filter(({ source }) => source === device).map(({ target }) => target);
}

test("a device of this machine gets a file system once, and keeps what is on it", { skip: needsRoot() }, async () => {
  await withDisk(async (volumes, device, begin) => {
    const { root } = volumes;
    const place = `${root}/plugins/kubernetes.io/local-volume/mounts/pv-c`;
    const [a, b] = [podOf("a"), podOf("b")];
    const mounted = await volumes.manager.mount(a, needs, cause, signal);
    const path = mounted.get("disk")?.hostPath ?? "";
    writeFileSync(`${path}/kept`, "data");
    assert.equal(statSync(path).gid, 4711);
    const [point] = (await systemMounts.list()).filter(({ target }) => target === place);
    assert.deepEqual([point?.fileSystem, point?.options.includes("noatime")], ["ext4", true]);
    await volumes.manager.mount(b, needs, cause, signal);
    assert.equal((await mountsOf(device)).length, 3);

    begin();
    await volumes.manager.release(podRef(a), { cause }, signal);
    assert.equal((await mountsOf(device)).length, 2);
    await volumes.manager.release(podRef(b), { cause }, signal);
    assert.deepEqual([await mountsOf(device), existsSync(place)], [[], false]);

    const again = await volumes.manager.mount(podOf("r", true), needs, cause, signal);
    const there = again.get("disk")?.hostPath ?? "";
    assert.equal(readFileSync(`${there}/kept`, "utf8"), "data");
    assert.throws(() => writeFileSync(`${there}/new`, ""), { code: "EROFS" });
    await volumes.manager.release(podRef(podOf("r")), { cause }, signal);
    assert.deepEqual(await mountsOf(device), []);
    assert.equal(volumes.entries.filter(({ what, kind }) => what === "FormatDisk" && kind === "action").length, 1);
  });
});

test("partitions on a device are left alone", { skip: needsRoot() }, async () => {
  await withDisk(async (volumes, device) => {
    const table = Buffer.alloc(512);
    table.set([0x80, 0, 2, 0, 0x83, 0, 10, 0, 1, 0, 0, 0, 0, 8, 0, 0], 446);
    table.set([0x55, 0xaa], 510);
    writeFileSync(device, table);
    const end = new AbortController();
    const mounting = volumes.manager.mount(podOf("a"), needs, cause, end.signal);
    const failure = (): string => volumes.entries.find(({ result }) => result === "failed")?.message ?? "";
    while (failure() === "") await systemClock.sleep("the failure", 50);
    end.abort();
    await assert.rejects(mounting);
    assert.match(failure(), /^MountVolume\.MountDevice failed .*; on it is unknown data, probably partitions$/u);
    assert.deepEqual(readFileSync(device).subarray(0, 512), table);
  });
});
