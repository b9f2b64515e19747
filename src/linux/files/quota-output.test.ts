import assert from "node:assert/strict";
import { test } from "node:test";
import { accountsForProjects, directoryProject, projectUsage } from "./quota-output.ts";

// As xfs_quota of xfsprogs prints them on xfs.
const on = `Project quota state on /kx (/dev/loop0)
  Accounting: ON
  Enforcement: ON
  Inode: #131 (2 blocks, 2 extents)
Blocks grace time: [7 days]
Blocks max warnings: 0
Inodes grace time: [7 days]
Inodes max warnings: 0
Realtime Blocks grace time: [7 days]
Realtime Blocks max warnings: 0
`;
const off = on.replace("Accounting: ON", "Accounting: OFF").replace("Enforcement: ON", "Enforcement: OFF");

test("a file system accounts for projects if its state says so", () => {
  assert.equal(accountsForProjects(on), true);
  assert.equal(accountsForProjects(off), false);
  assert.equal(accountsForProjects(""), false);
  assert.equal(accountsForProjects("User quota state on / (/dev/loop0)\n  Accounting: ON\n"), false);
});

const usage =
  "/dev/loop0                1024          0          0   00 [--------]           1          0          0   00 [--------] /kx\n";

test("a project's space and inodes are read, space in kibibytes", () => {
  assert.deepEqual(projectUsage(usage, "/dev/loop0"), { bytes: 1024 * 1024, inodes: 1 });
  assert.deepEqual(projectUsage(`${on}${usage}`, "/dev/loop0"), { bytes: 1024 * 1024, inodes: 1 });
});

test("a long device has a line of its own, and the time left may be two words", () => {
  const long =
    "/dev/mapper/vg-kubelet\n                            4          0          0   00 [7 days]          1          0          0   00 [-none-] /k\n";
  assert.deepEqual(projectUsage(long, "/dev/mapper/vg-kubelet"), { bytes: 4096, inodes: 1 });
});

test("without a record of the project, or with one of another device, nothing is known", () => {
  assert.equal(projectUsage("", "/dev/loop0"), undefined);
  assert.equal(projectUsage(on, "/dev/loop0"), undefined);
  assert.equal(projectUsage(usage, "/dev/vdc"), undefined);
  assert.equal(projectUsage(usage.replace("1024", "1k"), "/dev/loop0"), undefined);
});

test("xfs_io names the project of a directory", () => {
  assert.equal(directoryProject("projid = 1048577\n"), 1_048_577);
  assert.equal(directoryProject("projid = 0\n"), 0);
  assert.equal(directoryProject(""), undefined);
});
