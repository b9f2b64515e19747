import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { test } from "node:test";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import { changeOfMounts, currentMountTable, MountTable, recentMountOf } from "./mount-table.ts";
import { mountsBelow, readMountTable } from "./mountinfo.ts";
import { systemMounts } from "./mounts.ts";

test("the table is read again after a change only, and after a read that failed", () => {
  let [reads, hasChanged, fails] = [0, false, false];
  const table = new MountTable(
    () => {
      reads++;
      if (fails) throw new Error("no memory");
      return Buffer.from(String(reads));
    },
    () => hasChanged,
  );
  assert.equal(table.current().toString(), "1");
  assert.equal(table.current().toString(), "1");
  hasChanged = true;
  assert.equal(table.current().toString(), "2");
  fails = true;
  assert.throws(() => table.current(), /no memory/);
  [hasChanged, fails] = [false, false];
  assert.equal(table.current().toString(), "4");
  assert.equal(table.current().toString(), "4");
});

test("every mount and unmount shows at once, also those of another process", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  const target = directory.join("mounted");
  mkdirSync(target);
  // mount(8) does what no option of a memory file system is for.
  for (const options of [["size=65536"], ["size=65536", "nodev"]]) {
    for (let round = 0; round < 5; round++) {
      assert.deepEqual(mountsBelow(currentMountTable(), directory.path), []);
      await systemMounts.mount({ source: "tmpfs", target, fileSystem: "tmpfs", options });
      try {
        assert.equal(mountsBelow(currentMountTable(), directory.path)[0]?.target, target);
        const remount = { source: "tmpfs", target, fileSystem: "tmpfs", options: ["remount", "ro"] };
        await systemMounts.mount(remount);
        assert.ok(mountsBelow(currentMountTable(), directory.path)[0]?.options.includes("ro"));
      } finally {
        await systemMounts.unmount(target);
      }
    }
  }
  assert.deepEqual(mountsBelow(currentMountTable(), directory.path), []);
});

test("without a change it is not read again", { skip: changeOfMounts() === undefined && "no poll(2)" }, () => {
  // Others on this machine may mount something between the two.
  for (let tries = 0; tries < 1000; tries++) {
    const before = currentMountTable();
    if (currentMountTable() === before) return;
  }
  assert.fail(`read each time: ${readMountTable().length} bytes`);
});

test("a path is in the innermost of the mounts", () => {
  assert.equal(recentMountOf("/proc/self/none").target, "/proc");
});
