import assert from "node:assert/strict";
import { test } from "node:test";
import { parseMountInfo, readMountInfo } from "./mountinfo.ts";

test("a line with and without optional fields is read into its parts", () => {
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

test("octal escapes, UTF-8, an empty source and a path with a lone hyphen are understood", () => {
  const line = "40 1 0:40 / /a\\040b\\011c\\012d\\134e/\u00e9\\040-\\040x rw - tmpfs  rw";
  const [mount] = parseMountInfo(Buffer.from(line, "utf8").toString("latin1"));
  assert.equal(mount?.target, "/a b\tc\nd\\e/\u00e9 - x");
  assert.equal(mount?.source, "");
  assert.deepEqual(mount?.superOptions, ["rw"]);
});

test("lines cut short are left out", () => {
  assert.deepEqual(parseMountInfo("36 35 98:0 /mnt1\n36 35 98:0 / /mnt rw shared:1\nnonsense"), []);
});

test("this machine's own table has the root and /proc", async () => {
  const mounts = await readMountInfo();
  assert.ok(mounts.some((mount) => mount.target === "/"));
  assert.ok(mounts.some((mount) => mount.target === "/proc" && mount.fileSystem === "proc"));
});
