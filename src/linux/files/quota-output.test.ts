import assert from "node:assert/strict";
import { test } from "node:test";
import { accountsForProjects, directoryProject, projectUsage } from "./quota-output.ts";

// As xfs_quota prints them (quota/state.c, quota/quota.c of xfsprogs).
const on = `Project quota state on /var/lib/kubelet (/dev/vdb)
  Accounting: ON
  Enforcement: ON
  Inode: #132 (2 blocks, 2 extents)
Blocks grace time: [7 days]
Blocks max warnings: 5
Inodes grace time: [7 days]
Inodes max warnings: 5
Realtime Blocks grace time: [7 days]
Realtime Blocks max warnings: 5
`;
const off = on.replace("Accounting: ON", "Accounting: OFF").replace("Enforcement: ON", "Enforcement: OFF");

test("a file system accounts for projects if its state says so", () => {
  assert.equal(accountsForProjects(on), true);
  assert.equal(accountsForProjects(off), false);
  assert.equal(accountsForProjects(""), false);
  assert.equal(accountsForProjects("User quota state on / (/dev/vdb)\n  Accounting: ON\n"), false);
});

const usage =
  "/dev/vdb                 10244          0 9007199254740991   00 [--------]          3          0          0   00 [--------] /var/lib/kubelet\n";

test("a project's space and inodes are read, space in kibibytes", () => {
  assert.deepEqual(projectUsage(usage, "/dev/vdb"), { bytes: 10_244 * 1024, inodes: 3 });
  assert.deepEqual(projectUsage(`${on}${usage}`, "/dev/vdb"), { bytes: 10_244 * 1024, inodes: 3 });
});

test("a long device has a line of its own, and the time left may be two words", () => {
  const long =
    "/dev/mapper/vg-kubelet\n                            4          0          0   00 [7 days]          1          0          0   00 [-none-] /k\n";
  assert.deepEqual(projectUsage(long, "/dev/mapper/vg-kubelet"), { bytes: 4096, inodes: 1 });
});

test("without a record of the project, or with one of another device, nothing is known", () => {
  assert.equal(projectUsage("", "/dev/vdb"), undefined);
  assert.equal(projectUsage(on, "/dev/vdb"), undefined);
  assert.equal(projectUsage(usage, "/dev/vdc"), undefined);
  assert.equal(projectUsage(usage.replace("10244", "1k"), "/dev/vdb"), undefined);
});

test("xfs_io names the project of a directory", () => {
  assert.equal(directoryProject("projid = 1048577\n"), 1_048_577);
  assert.equal(directoryProject("projid = 0\n"), 0);
  assert.equal(directoryProject(""), undefined);
});
