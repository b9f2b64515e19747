import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fileSystemNumberOf,
  mountDevices,
  mountsAbove,
  mountsBelow,
  parseMountInfo,
  readMountInfo,
} from "./mountinfo.ts";

test("a line with and without optional fields is parsed", () => {
  const text = [
    "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue",
    "38 33 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct",
    "",
  ].join("\n");
  assert.deepEqual(parseMountInfo(text), [
    {
      id: 36,
      parentId: 35,
      device: "98:0",
      root: "/mnt1",
      target: "/mnt2",
      fileSystem: "ext3",
      source: "/dev/root",
      options: ["rw", "noatime"],
      isShared: true,
      superOptions: ["rw", "errors=continue"],
    },
    {
      id: 38,
      parentId: 33,
      device: "0:30",
      root: "/",
      target: "/sys/fs/cgroup/cpu,cpuacct",
      fileSystem: "cgroup",
      source: "cgroup",
      options: ["rw", "nosuid"],
      isShared: false,
      superOptions: ["rw", "cpu", "cpuacct"],
    },
  ]);
});

test("subvolumes of a btrfs are one file system, although their paths have device numbers of their own", () => {
  const table = [
    "20 1 0:35 /@ / rw - btrfs /dev/sda2 rw,subvol=/@",
    "21 20 0:35 /@containers /var/lib/containers rw - btrfs /dev/sda2 rw,subvol=/@containers",
    "22 20 8:17 / /data rw - ext4 /dev/sdb1 rw",
  ].join("\n");
  const devices = mountDevices(table);
  const btrfs = (dev: number, target: string): number => {
    return fileSystemNumberOf({ dev, type: 2_435_016_766 }, { device: devices.get(target) ?? "" });
  };
  assert.equal(btrfs(51, "/"), 35);
  assert.equal(btrfs(52, "/var/lib/containers"), 35);
  assert.equal(btrfs(51, "/unknown"), 51);
  assert.equal(fileSystemNumberOf({ dev: 2065, type: 61_267 }, { device: "8:17" }), 2065);
  assert.equal(fileSystemNumberOf({ dev: 1, type: 2_435_016_766 }, { device: "8:17" }), 2065);
  assert.equal(fileSystemNumberOf({ dev: 1, type: 2_435_016_766 }, { device: "0:300" }), 44 + 2 ** 20);
});

test("octal escapes, UTF-8, an empty source and a path with a lone hyphen are parsed", () => {
  const line = "40 1 0:40 / /a\\040b\\011c\\012d\\134e/\u00e9\\040-\\040x rw - tmpfs  rw";
  const [mount] = parseMountInfo(Buffer.from(line, "utf8").toString("latin1"));
  assert.equal(mount?.target, "/a b\tc\nd\\e/\u00e9 - x");
  assert.equal(mount?.source, "");
  assert.deepEqual(mount?.superOptions, ["rw"]);
});

test("mounts at and below a path, and at and above it, are found without parsing the rest", () => {
  const targets = ["/", "/a", "/a/b", "/a/b\\040c", "/a/b\\040c/d", "/a/b\\040cd", "/x", "/a/b\\040c", "/é/e"];
  // A source that looks like a mount point.
  const lines = targets.map((target, id) => `${id} 0 0:1 / ${target} rw - tmpfs /a/b\\040c rw`);
  const table = Buffer.from(lines.join("\n"), "utf8");
  const ids = (mounts: readonly { readonly id: number }[]): number[] => mounts.map(({ id }) => id);
  assert.deepEqual(ids(mountsBelow(table, "/a/b c")), [3, 4, 7]);
  assert.deepEqual(ids(mountsBelow(table, "/a/b")), [2]);
  assert.deepEqual(ids(mountsBelow(table, "/é")), [8]);
  assert.deepEqual(ids(mountsBelow(table, "/none")), []);
  assert.deepEqual(ids(mountsBelow(table, "/")), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(ids(mountsAbove(table, "/a/b c/d")), [4, 3, 7, 1, 0]);
  assert.deepEqual(mountsBelow(Buffer.of(), "/a"), []);
});

test("truncated lines are skipped", () => {
  assert.deepEqual(parseMountInfo("36 35 98:0 /mnt1\n36 35 98:0 / /mnt rw shared:1\nnonsense"), []);
});

test("this machine's own table has the root and /proc", async () => {
  const mounts = readMountInfo();
  assert.ok(mounts.some((mount) => mount.target === "/"));
  assert.ok(mounts.some((mount) => mount.target === "/proc" && mount.fileSystem === "proc"));
});

test("the last mount at a mount point is what a path there shows", () => {
  const table = [
    "20 1 8:1 / / rw - ext4 /dev/sda1 rw",
    "21 20 8:2 / /with\\040space rw - ext4 /dev/sdb1 rw",
    "22 21 0:40 / /with\\040space rw - tmpfs tmpfs rw",
    "",
  ].join("\n");
  assert.deepEqual(
    [...mountDevices(table)],
    [
      ["/", "8:1"],
      ["/with space", "0:40"],
    ],
  );
});
