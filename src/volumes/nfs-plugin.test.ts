import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { Volume } from "../api/volume.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import { FileError } from "../ports/files.ts";
import type { MountPoint } from "../ports/mounts.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import { nfsMount } from "./nfs-plugin.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";

/** Records the calls of mount(8) and umount(8), which fail on the test's command. */
class TestMounts extends SimMounts {
  readonly asked: string[] = [];
  problem: Error | undefined;
  unmountProblem: Error | undefined;

  override async mount(point: MountPoint): Promise<void> {
    this.asked.push(`mount -t ${point.fileSystem} -o ${point.options.join(",")} ${point.source}`);
    if (this.problem !== undefined) throw this.problem;
    await super.mount(point);
  }

  override async unmount(target: string, options: { readonly force?: boolean } = {}): Promise<void> {
    this.asked.push(`umount${options.force === true ? " --force" : ""}`);
    if (this.unmountProblem !== undefined && options.force !== true) throw this.unmountProblem;
    await super.unmount(target);
  }
}

class Fixture extends VolumesUnderTest {
  readonly clock: ManualClock;
  readonly files: MemoryFiles;
  readonly mounts: TestMounts;
  readonly storage = new TestStorage();

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const mounts = new TestMounts();
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices: new SimLoopDevices() });
    this.clock = clock;
    this.files = files;
    this.mounts = mounts;
    this.begin();
  }

  begin(): void {
    const { storage } = this;
    this.restart({ cluster: { storage, node: new NodeVolumes(), byController: true, labels: () => ({}) } });
  }

  get failures(): string[] {
    return this.entries.filter(({ result }) => result === "failed").map(({ message }) => message);
  }
}

let fixture: Fixture;
beforeEach(() => (fixture = new Fixture()));

const nfs = { server: "files.example.org", path: "/exports/a" };
const pod = podOfVolumes([{ name: "data", nfs }], { securityContext: { fsGroup: 7 } });
const directory = `${root}/pods/${pod.metadata.uid}/volumes/kubernetes.io~nfs/data`;

test("an export is mounted for its pod, survives a restart, and is unmounted without a trace", async () => {
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(mounted.get("data")?.hostPath, directory);
  assert.deepEqual(fixture.mounts.asked, ["mount -t nfs -o  files.example.org:/exports/a"]);
  fixture.begin();
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(fixture.mounts.asked.length, 1);
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual([await fixture.mounts.list(), await fixture.files.stat(directory)], [[], undefined]);
});

test("options come from the volume, and read-only applies to the server and to containers", () => {
  const of = (own: Volume["nfs"], persistent?: PersistentVolume["spec"], readOnly = false): unknown => {
    const persistentVolume = persistent && { metadata: { name: "pv" }, spec: persistent };
    const volume: Volume = { name: "v", ...(own && { nfs: own }) };
    return nfsMount({
      ...{ podVolume: "v", name: "v", volume, readOnly, mode: "Filesystem" },
      persistentVolume,
      isMigrated: false,
    });
  };
  const source = "files.example.org:/exports/a";
  assert.deepEqual(of({ ...nfs, readOnly: true }), { source, options: ["ro"] });
  const mountOptions = ["hard,nfsvers=4.1", "ro"];
  assert.deepEqual(of(undefined, { nfs, mountOptions }, true), { source, options: ["ro", "hard", "nfsvers=4.1"] });
  assert.deepEqual(of(undefined, { nfs: { ...nfs, readOnly: true } }), { source, options: [] });
  assert.deepEqual(of({ server: "fd00::1", path: "/" }), { source: "[fd00::1]:/", options: [] });
});

test("a claim of an export is mounted under its volume's name", async () => {
  fixture.storage.bind("c", { nfs, mountOptions: ["hard"] });
  const claiming = podOfVolumes([{ name: "data", persistentVolumeClaim: { claimName: "c", readOnly: true } }]);
  const mounted = await fixture.manager.mount(claiming, needs, cause, signal);
  const volume = mounted.get("data");
  assert.deepEqual([volume?.hostPath.endsWith("kubernetes.io~nfs/pv-c"), volume?.readOnly], [true, true]);
  assert.deepEqual(fixture.mounts.asked, ["mount -t nfs -o ro,hard files.example.org:/exports/a"]);
});

test("a mount that fails leaves nothing, is reported, and is retried", async () => {
  const why = "cannot mount: mount.nfs: Connection refused";
  fixture.mounts.problem = new Error(why);
  const mounting = fixture.manager.mount(pod, needs, cause, signal);
  await fixture.clock.advance(0);
  assert.deepEqual(fixture.failures, [`MountVolume.SetUp failed for volume "data" : ${why}`]);
  assert.equal(await fixture.files.stat(directory), undefined);
  fixture.mounts.problem = undefined;
  await fixture.clock.advance(500);
  assert.equal((await mounting).size, 1);
});

test("only an unmount that a dead server blocks is forced", async () => {
  await fixture.manager.mount(pod, needs, cause, signal);
  fixture.mounts.asked.length = 0;
  fixture.mounts.unmountProblem = new Error("target is busy");
  await assert.rejects(fixture.manager.release(podRef(pod), { cause }, signal), /target is busy/u);
  assert.deepEqual(fixture.mounts.asked, ["umount"]);
  fixture.mounts.unmountProblem = new FileError("ETIMEDOUT", directory, "umount has not ended");
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(fixture.mounts.asked, ["umount", "umount", "umount --force"]);
  assert.deepEqual(await fixture.mounts.list(), []);
});

test("files in its directory without a mount stay", async () => {
  await fixture.files.makeDirectory(directory, 0o750);
  await fixture.files.write(`${directory}/file`, "somebody's", 0o644);
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.ok(await fixture.files.stat(`${directory}/file`));
});
