import assert from "node:assert/strict";
import { linkSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { FileError } from "../../ports/files.ts";
import { inSubvolume, mountedBtrfs, noBtrfs, subvolumes } from "../../../test/support/btrfs.ts";
import { HangingStorage, noHangingStorage } from "../../../test/support/hanging-storage.ts";
import { systemClock } from "../processes/clock.ts";
import { measuringThreads } from "./measuring-threads.ts";
import { recentMountOf } from "./mount-table.ts";
import { systemMounts } from "./mounts.ts";
import { parseMountInfo } from "./mountinfo.ts";
import { cgroupLayout, openStatsFiles } from "./stats-files.ts";
import { testDirectory } from "../processes/testing.ts";

const { signal } = new AbortController();

test("kernel files are read in batches, and missing ones are undefined", async () => {
  const files = await openStatsFiles(systemClock);
  const paths = ["/proc/loadavg", "/proc/none", ...Array.from({ length: 200 }, () => "/proc/self/stat")];
  const texts = await files.readTexts(paths);
  assert.match(texts[0] ?? "", /^\d+\.\d+ /u);
  assert.equal(texts[1], undefined);
  assert.equal(texts.length, 202);
  assert.ok(texts.slice(2).every((text) => text?.startsWith(`${process.pid} (`)));
});

test("a file longer than a page, or than one read, is whole", async () => {
  using directory = testDirectory();
  const files = await openStatsFiles(systemClock);
  const text = Array.from({ length: 30_000 }, (_, index) => `line ${index}\n`).join("");
  writeFileSync(directory.join("long"), text);
  writeFileSync(directory.join("empty"), "");
  const [long, empty, maps] = await files.readTexts([
    directory.join("long"),
    directory.join("empty"),
    "/proc/self/smaps",
  ]);
  assert.equal(long, text);
  assert.equal(empty, "");
  assert.ok(maps !== undefined && maps.length > 8192 && maps.includes("[stack]"));
});

test("a tree is measured as by du: hard links once, links to elsewhere not followed", async () => {
  using directory = testDirectory();
  const files = await openStatsFiles(systemClock);
  mkdirSync(directory.join("below"));
  writeFileSync(directory.join("below/big"), Buffer.alloc(100_000, 1));
  writeFileSync(directory.join("small"), "x");
  linkSync(directory.join("below/big"), directory.join("again"));
  symlinkSync("/usr", directory.join("elsewhere"));
  const usage = await files.treeUsage(directory.path, signal);
  const blocks = (path: string): number => statSync(path).blocks * 512;
  const wanted = ["", "below", "below/big", "small"].map((path) => blocks(directory.join(path)));
  assert.equal(usage?.inodes, 5);
  // The link itself may occupy a block or none.
  const least = wanted.reduce((a, b) => a + b);
  assert.ok(usage.bytes >= least && usage.bytes <= least + 4096, `${usage.bytes} of ${least}`);
  assert.deepEqual(await files.filesUsage(directory.path), {
    bytes: blocks(directory.join("again")) + blocks(directory.join("small")),
    inodes: 2,
  });
  assert.deepEqual((await files.directories(directory.path)).toSorted(), ["below"]);
  assert.equal(await files.treeUsage(directory.join("none"), signal), undefined);
  assert.equal(await files.filesUsage(directory.join("none")), undefined);
  assert.deepEqual(await files.directories(directory.join("none")), []);
});

test("directories of any size are measured whole, on disks and in memory", async () => {
  const files = await openStatsFiles(systemClock);
  using onDisk = testDirectory();
  using memory = testDirectory("/dev/shm");
  for (const path of [onDisk.path, memory.path]) {
    mkdirSync(`${path}/small/empty`, { recursive: true });
    mkdirSync(`${path}/big`);
    // More than 64 KiB of names.
    for (let index = 0; index < 1500; index++) writeFileSync(`${path}/big/${"name".repeat(12)}-${index}`, "");
    assert.equal((await files.treeUsage(path, signal))?.inodes, 1504, path);
  }
});

test(
  "btrfs subvolumes in a tree count with their contents, and what is mounted in them does not",
  { skip: noBtrfs() },
  async () => {
    using btrfs = mountedBtrfs();
    const files = await openStatsFiles(systemClock);
    const tree = `${btrfs.path}/volume`;
    const inodes = async (): Promise<number | undefined> => (await files.treeUsage(tree, signal))?.inodes;
    // Each subvolume has a directory above it and a file; files of two subvolumes may have one inode number.
    const made = 1 + 3 * subvolumes;
    assert.equal(await inodes(), made);
    for (const at of ["", `${inSubvolume}/`]) {
      writeFileSync(`${tree}/${at}linked`, "");
      linkSync(`${tree}/${at}linked`, `${tree}/${at}again`);
    }
    assert.equal(await inodes(), made + 2);
    const target = `${tree}/${inSubvolume}/mounted`;
    mkdirSync(target);
    await systemMounts.mount({ source: "tmpfs", target, fileSystem: "tmpfs", options: [] });
    assert.equal(await inodes(), made + 2);
  },
);

test("mounts in a tree are not accessed", { skip: noHangingStorage ?? false }, async () => {
  using directory = testDirectory();
  const files = await openStatsFiles(systemClock);
  writeFileSync(directory.join("small"), "x");
  using hanging = new HangingStorage(directory.join("far"));
  // The table of mounts may be a second old.
  await systemClock.sleep("the table of mounts to be read anew", 1_100);
  const beganMs = performance.now();
  assert.equal((await files.treeUsage(directory.path, signal))?.inodes, 2);
  assert.equal(await files.treeUsage(hanging.path, signal), undefined);
  assert.ok(performance.now() - beganMs < 5_000);
  hanging.end();
  assert.equal(await files.fileSystem(hanging.path), undefined);
});

test("while a disk does not answer nothing on it is measured, which an error says", async (t) => {
  using directory = testDirectory();
  const files = await openStatsFiles(systemClock);
  writeFileSync(directory.join("small"), "x");
  symlinkSync("/proc", directory.join("link"));
  assert.ok(await files.fileSystem(directory.join("link")));
  const mount = recentMountOf(directory.path);
  const stall = Promise.withResolvers<void>();
  const hanging = measuringThreads.walk(mount, () => stall.promise);
  await setImmediate();
  const nowMs = systemClock.monotonic();
  const later = t.mock.method(systemClock, "monotonic", () => nowMs + 60_000);
  const isRefused = (error: unknown): boolean => error instanceof FileError && error.path === mount.target;
  for (const measure of [
    async () => await files.treeUsage(directory.path, signal),
    async () => await files.filesUsage(directory.path),
    async () => await files.fileSystem(directory.path),
    async () => await files.fileSystemNumber(directory.path),
    async () => await files.deviceOf(directory.path),
  ]) {
    await assert.rejects(measure, isRefused);
  }
  assert.ok(await files.fileSystem("/proc"), "other file systems are");
  assert.ok(
    await files.fileSystem(directory.join("link")),
    "also by a link on this one, once it is known where it leads",
  );
  later.mock.restore();
  stall.resolve();
  await hanging;
  assert.equal((await files.treeUsage(directory.path, signal))?.inodes, 3);
});

test("file systems report their usage, processes their open files", async () => {
  const files = await openStatsFiles(systemClock);
  const root = await files.fileSystem("/");
  assert.ok(root && root.capacityBytes >= root.usedBytes && root.availableBytes <= root.capacityBytes);
  assert.equal(await files.fileSystem("/none"), undefined);
  assert.equal(await files.deviceOf("/proc/self"), "proc");
  assert.equal(await files.deviceOf("/none"), undefined);
  const open = await files.openFiles(process.pid);
  assert.ok(open && open.descriptors >= 3 && open.sockets <= open.descriptors);
  assert.equal(await files.openFiles(2 ** 30), undefined);
});

test("cgroups are located by the mount table", () => {
  const v2 = parseMountInfo("30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  assert.deepEqual(cgroupLayout(v2), { version: 2, root: "/sys/fs/cgroup" });
  const v1 = parseMountInfo(
    [
      "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw",
      "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct",
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
    ].join("\n"),
  );
  const layout = cgroupLayout(v1);
  assert.equal(layout.version, 1);
  assert.equal(layout.version === 1 && layout.controllers["cpuacct"], "/sys/fs/cgroup/cpu,cpuacct");
  assert.equal(layout.version === 1 && layout.controllers["memory"], "/sys/fs/cgroup/memory");
});
