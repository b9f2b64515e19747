import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, VolumesUnderTest } from "../../test/support/volumes.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { LoopDevices } from "../ports/loop-devices.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";
const bound = `${root}/plugins/kubernetes.io~local-volume/volumeDevices/pv-c/u`;
const link = `${root}/pods/u/volumeDevices/kubernetes.io~local-volume/pv-c`;
const pod = podWith({
  containers: [{ name: "app", volumeDevices: [{ name: "disk", devicePath: "/dev/disk" }] }],
  volumes: [{ name: "disk", persistentVolumeClaim: { claimName: "c" } }],
});

class Fixture extends VolumesUnderTest {
  readonly clock: ManualClock;
  readonly files: MemoryFiles;
  readonly mounts: SimMounts;
  readonly loopDevices: SimLoopDevices & { problem?: Error | undefined };
  readonly storage = new TestStorage();

  constructor() {
    const clock = new ManualClock();
    const [files, mounts, loopDevices] = [new MemoryFiles(clock), new SimMounts(), new FailingLoopDevices()];
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices });
    this.clock = clock;
    this.files = files;
    this.mounts = mounts;
    this.loopDevices = loopDevices;
    this.begin();
  }

  begin(): void {
    const { storage } = this;
    this.restart({ cluster: { storage, node: new NodeVolumes(), byController: true, labels: () => ({}) } });
  }

  get events(): string[] {
    return this.entries.filter(({ what }) => what === "SuccessfulMountVolume").map(({ message }) => message);
  }
}

class FailingLoopDevices extends SimLoopDevices implements LoopDevices {
  problem: Error | undefined;

  override async hold(path: string): Promise<void> {
    if (this.problem !== undefined) throw this.problem;
    await super.hold(path);
  }
}

let fixture: Fixture;
beforeEach(async () => {
  fixture = new Fixture();
  await fixture.files.makeDirectory("/dev", 0o755);
  await fixture.files.write("/dev/sdb", "", 0o600);
  fixture.storage.bind("c", { volumeMode: "Block", local: { path: "/dev/sdb" } });
});

test("a block device of the node is bind-mounted, linked and held for its pod, and released without a trace", async () => {
  const mounted = await fixture.manager.mount(pod, needs, cause, signal);
  assert.deepEqual(mounted.get("disk"), { hostPath: link, directoryName: "pv-c", readOnly: false, own: false });
  assert.equal(await fixture.files.readLink(link), "/dev/sdb");
  const mounts = await fixture.mounts.list();
  assert.deepEqual(mounts, [{ source: "/dev/sdb", target: bound, fileSystem: "", options: ["bind"] }]);
  assert.deepEqual([...fixture.loopDevices.held], [bound]);
  const succeeded = 'MapVolume.MapPodDevice succeeded for volume "pv-c"';
  assert.deepEqual(fixture.events, [
    `${succeeded} globalMapPath "${root}/plugins/kubernetes.io~local-volume/volumeDevices/pv-c"`,
    `${succeeded} volumeMapPath "${root}/pods/u/volumeDevices/kubernetes.io~local-volume"`,
  ]);
  // The next run finds it unchanged, and tears it down from the state on disk.
  fixture.begin();
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal(fixture.events.length, 2, "nothing was to be done");
  await fixture.manager.release(podRef(pod), { cause }, signal);
  assert.deepEqual(await fixture.mounts.list(), []);
  assert.deepEqual([...fixture.loopDevices.held], []);
  for (const path of [link, bound]) assert.equal(await fixture.files.stat(path), undefined);
  assert.ok(await fixture.files.stat("/dev/sdb"));
});

test("a block volume is repaired after a reboot", async () => {
  await fixture.manager.mount(pod, needs, cause, signal);
  await fixture.mounts.unmount(bound);
  fixture.loopDevices.held.clear();
  fixture.begin();
  await fixture.manager.mount(pod, needs, cause, signal);
  assert.equal((await fixture.mounts.list()).length, 1);
  assert.deepEqual([...fixture.loopDevices.held], [bound]);
});

test("a device that cannot be held fails the map in upstream's words, and is retried", async () => {
  fixture.loopDevices.problem = new Error("no free loop device");
  const mounting = fixture.manager.mount(pod, needs, cause, signal);
  mounting.catch(() => {});
  await fixture.clock.advance(0);
  const globalMap = `${root}/plugins/kubernetes.io~local-volume/volumeDevices/pv-c`;
  const why = `blkUtil.AttachFileDevice failed. globalMapPath:${globalMap}, podUID: u: no free loop device`;
  const failed = fixture.entries.find((entry) => entry.kind === "outcome" && entry.result === "failed");
  assert.equal(failed?.what, "MapVolume");
  assert.ok(failed?.message.endsWith(`MapVolume.MapBlockVolume failed for volume "pv-c" : ${why}`), failed?.message);
  fixture.loopDevices.problem = undefined;
  await fixture.clock.advance(1000);
  await mounting;
});

const refused: readonly (readonly [what: string, path: string, why: string])[] = [
  ["is not there", "/dev/none", 'path "/dev/none" does not exist'],
  ["is a directory", "/", 'path "/" is not a block device'],
  ["leads elsewhere", "/dev/../dev/sdb", "invalid path: /dev/../dev/sdb must not contain '..'"],
];
for (const [what, path, why] of refused) {
  test(`a block volume whose path ${what} is not mapped`, async () => {
    fixture.storage.bind("c", { volumeMode: "Block", local: { path } });
    const mounting = fixture.manager.mount(pod, needs, cause, signal);
    mounting.catch(() => {});
    await fixture.clock.advance(0);
    const failed = fixture.entries.find((entry) => entry.kind === "outcome" && entry.result === "failed");
    assert.ok(failed?.message.endsWith(`volume "pv-c" : ${why}`), failed?.message ?? "no failure");
    fixture.storage.bind("c", { volumeMode: "Block", local: { path: "/dev/sdb" } });
    await fixture.clock.advance(120_000);
    await mounting;
  });
}

test("a volume with a file system cannot be used as a device", async () => {
  fixture.storage.bind("c", { local: { path: "/dev/sdb" } });
  const mounting = fixture.manager.mount(pod, needs, cause, signal);
  mounting.catch(() => {});
  await fixture.clock.advance(0);
  const told = fixture.entries.find(({ what }) => what === "VolumeUnprocessed")?.message ?? "";
  assert.match(told, /: volume disk has volumeMode Filesystem, but is specified in volumeDevices$/u);
  fixture.storage.bind("c", { volumeMode: "Block", local: { path: "/dev/sdb" } });
  await fixture.clock.advance(10_000);
  await mounting;
});
