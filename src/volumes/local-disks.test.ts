import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TestStorage } from "../../test/support/storage.ts";
import { cause, needs, podOfVolumes, VolumesUnderTest } from "../../test/support/volumes.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { NodeVolumes } from "../node/node-volumes.ts";
import type { CommandResult, Processes } from "../ports/processes.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { MemoryFiles } from "../sim/files.ts";
import { SimLoopDevices, SimMounts } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";

const signal = new AbortController().signal;
const root = "/var/lib/kubelet";
const device = "/dev/sdb";
const place = `${root}/plugins/kubernetes.io/local-volume/mounts/pv-c`;
const of = (uid: string): string => `${root}/pods/${uid}/volumes/kubernetes.io~local-volume/pv-c`;

/** blkid, mkfs and fsck over one device. */
class Disk implements Pick<Processes, "run"> {
  readonly commands: string[] = [];
  /** What blkid says; undefined: nothing. */
  content: string | undefined;
  problems: Readonly<Record<string, Partial<CommandResult>>> = {};
  /** As many looks find nothing, because the device cannot be read. */
  blindLooks = 0;

  async run(program: string, words: readonly string[]): Promise<CommandResult> {
    this.commands.push([program, ...words].join(" "));
    const good = { exitCode: 0, signal: undefined, stdout: "", stderr: "" };
    const problem = this.problems[program];
    if (problem !== undefined) return { ...good, ...problem };
    if (program === "blkid") {
      return this.content === undefined || this.blindLooks-- > 0
        ? { ...good, exitCode: 2 }
        : { ...good, stdout: `DEVNAME=x\n${this.content}\n` };
    }
    if (program.startsWith("mkfs.")) this.content = `TYPE=${program.slice(5)}`;
    return good;
  }
}

class Fixture extends VolumesUnderTest {
  readonly clock: ManualClock;
  readonly files: MemoryFiles;
  readonly mounts: SimMounts;
  readonly storage = new TestStorage();
  readonly disk: Disk;

  constructor() {
    const clock = new ManualClock();
    const files = new MemoryFiles(clock);
    const [mounts, disk, loopDevices] = [new SimMounts(), new Disk(), new SimLoopDevices()];
    super(root, { clock, files, mounts, volumeFiles: new SimVolumeFiles(files), loopDevices, processes: disk });
    this.clock = clock;
    this.files = files;
    this.mounts = mounts;
    this.disk = disk;
    this.begin();
  }

  begin(): void {
    const { storage } = this;
    this.restart({ cluster: { storage, node: new NodeVolumes(), byController: true, labels: () => ({}) } });
  }

  async mounted(): Promise<string[]> {
    return (await this.mounts.list()).map(({ source, target }) => `${source} at ${target}`);
  }

  /** Of the first try. */
  async failure(pod: Pod): Promise<string> {
    this.manager.mount(pod, needs, cause, signal).catch(() => {});
    await this.clock.advance(0);
    return this.entries.findLast(({ result }) => result === "failed")?.message ?? "";
  }
}

function podOf(uid: string, readOnly = false): Pod {
  const claim = { persistentVolumeClaim: { claimName: "c", readOnly } };
  const pod = podOfVolumes([{ name: "disk", ...claim }], { securityContext: { fsGroup: 7 } });
  return { ...pod, metadata: { ...pod.metadata, name: uid, uid: podUid(uid) } };
}

let fixture: Fixture;
beforeEach(async () => {
  fixture = new Fixture();
  await fixture.files.makeDirectory("/dev", 0o755);
  await fixture.files.write(device, "\0".repeat(4096), 0o600);
  fixture.storage.bind("c", { local: { path: device, fsType: "ext4" }, mountOptions: ["noatime"] });
});

const read = `dd if=${device} of=/dev/null bs=4096 count=1`;
const look = `blkid -p -s TYPE -s PTTYPE -o export ${device}`;

test("an empty device gets a file system, is mounted once for its pods, and unmounted after the last", async () => {
  const { manager, disk } = fixture;
  await manager.mount(podOf("a"), needs, cause, signal);
  assert.deepEqual(disk.commands, [look, read, look, read, `mkfs.ext4 -F -m0 ${device}`]);
  const [told] = fixture.entries.filter(({ what }) => what === "FormatDisk");
  assert.deepEqual(
    [told?.message, told?.cause?.code],
    [`make a file system of type ext4 on ${device}, where nothing is`, "VolumeWanted"],
  );
  await manager.mount(podOf("b"), needs, cause, signal);
  assert.deepEqual(await fixture.mounted(), [
    `${device} at ${place}`,
    `${place} at ${of("a")}`,
    `${place} at ${of("b")}`,
  ]);
  await manager.release(podRef(podOf("a")), { cause }, signal);
  assert.deepEqual(await fixture.mounted(), [`${device} at ${place}`, `${place} at ${of("b")}`]);

  fixture.begin();
  await fixture.manager.release(podRef(podOf("b")), { cause }, signal);
  assert.deepEqual([await fixture.mounted(), await fixture.files.stat(place)], [[], undefined]);
  assert.equal(disk.commands.length, 5);
});

test("a device that is mounted, but not yet for its pod, is unmounted with the pod, also by the next run", async () => {
  for (const [outcome, restarts] of [
    ["fails", false],
    ["fails", true],
    ["ends with podwright", true],
  ] as const) {
    const mount = fixture.mounts.mount.bind(fixture.mounts);
    fixture.mounts.mount = async (point) => {
      if (point.target !== place) throw new Error("no space left on device");
      await mount(point);
      if (outcome === "ends with podwright") await new Promise(() => {});
    };
    await fixture.failure(podOf("a"));
    assert.deepEqual(await fixture.mounted(), [`${device} at ${place}`]);
    fixture.mounts.mount = mount;
    if (restarts) fixture.begin();
    await fixture.manager.release(podRef(podOf("a")), { cause }, signal);
    assert.deepEqual(await fixture.mounted(), [], `${outcome}, restarts: ${restarts}`);
    for (const path of [place, of("a")]) assert.equal(await fixture.files.stat(path), undefined);
  }
});

test("what is on a device is checked and mounted, and never formatted", async () => {
  const { disk } = fixture;
  disk.content = "TYPE=ext4";
  await fixture.manager.mount(podOf("a"), needs, cause, signal);
  assert.deepEqual(disk.commands, [look, `fsck -a ${device}`]);
  const [point] = await fixture.mounts.list();
  assert.deepEqual([point?.fileSystem, point?.options], ["ext4", ["noatime"]]);
});

test("a device with partitions or another file system is mounted as it is wanted, or the failure says what is on it", async () => {
  const { disk } = fixture;
  for (const [content, found] of [
    ["PTTYPE=gpt", "unknown data, probably partitions"],
    ["TYPE=xfs", "xfs"],
  ] as const) {
    disk.content = content;
    const mount = fixture.mounts.mount.bind(fixture.mounts);
    fixture.mounts.mount = async () => {
      throw new Error("wrong fs type");
    };
    assert.equal(
      await fixture.failure(podOf(content)),
      `MountVolume.MountDevice failed for volume "pv-c" : local: failed to mount device ${device} at ${place} (fstype: ext4), error wrong fs type; on it is ${found}`,
    );
    fixture.mounts.mount = mount;
    assert.equal(await fixture.files.stat(place), undefined);
  }
  assert.ok(!disk.commands.some((command) => command.startsWith("mkfs")));
});

test("a read-only claim formats and checks nothing", async () => {
  const { disk } = fixture;
  assert.equal(
    await fixture.failure(podOf("a", true)),
    `MountVolume.MountDevice failed for volume "pv-c" : cannot mount unformatted disk ${device} as we are manipulating it in read-only mode`,
  );
  disk.content = "TYPE=ext4";
  await fixture.manager.mount(podOf("b", true), needs, cause, signal);
  assert.deepEqual(disk.commands, [look, read, look, read, look]);
  assert.deepEqual((await fixture.mounts.list())[0]?.options, ["ro", "noatime"]);
});

test("a device that can be read again after a look at it is looked at anew", async () => {
  const { disk } = fixture;
  disk.content = "TYPE=ext4";
  disk.blindLooks = 1;
  await fixture.manager.mount(podOf("a"), needs, cause, signal);
  assert.deepEqual(disk.commands, [look, read, look, `fsck -a ${device}`]);
});

test("a device that cannot be read is not taken for an empty one", async () => {
  const { disk } = fixture;
  disk.problems = { dd: { exitCode: 1, stderr: "dd: error reading '/dev/sdb': Input/output error\n" } };
  assert.match(await fixture.failure(podOf("a")), /cannot read disk \/dev\/sdb: .*Input\/output error$/u);
  disk.problems = { blkid: { exitCode: 4, stderr: "ambivalent result\n" } };
  assert.match(await fixture.failure(podOf("b")), /failed to get disk format of disk \/dev\/sdb: ambivalent result$/u);
  disk.problems = { mkfs: {}, "mkfs.ext4": { exitCode: 1, stderr: "is apparently in use\n" } };
  assert.match(await fixture.failure(podOf("c")), /format of disk "\/dev\/sdb" failed: is apparently in use$/u);
  disk.content = "TYPE=ext4";
  disk.problems = { fsck: { exitCode: 4, stdout: "UNEXPECTED INCONSISTENCY\n" } };
  assert.match(await fixture.failure(podOf("d")), /could not correct them: UNEXPECTED INCONSISTENCY$/u);
  assert.deepEqual(await fixture.mounted(), []);
});

test("what is no type of file systems becomes no name of a program", async () => {
  fixture.storage.bind("c", { local: { path: device, fsType: "../evil" } });
  assert.match(await fixture.failure(podOf("a")), /fsType "\.\.\/evil" is no file system$/u);
  assert.deepEqual(fixture.disk.commands, []);
});
