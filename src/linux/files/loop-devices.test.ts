import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import { systemLoopDevices } from "./loop-devices.ts";

const skip = needsRoot() || (existsSync("/dev/loop-control") ? false : "the kernel has no loop devices");

test("a path is held by one loop device until it is released", { skip }, async () => {
  using directory = testDirectory();
  const file = directory.join("image");
  writeFileSync(file, new Uint8Array(1 << 20));
  assert.equal(await systemLoopDevices.isHeld(file), false);
  try {
    await systemLoopDevices.hold(file);
    assert.equal(await systemLoopDevices.isHeld(file), true);
    await systemLoopDevices.hold(file);
  } finally {
    await systemLoopDevices.release(file);
  }
  assert.equal(await systemLoopDevices.isHeld(file), false, "there was one");
  await systemLoopDevices.release(file);
});

test("the error of a device that cannot be held names it", { skip }, async () => {
  using directory = testDirectory();
  const path = directory.join("none");
  await assert.rejects(systemLoopDevices.hold(path), (error: Error) => {
    return error.message.startsWith(`cannot attach a loop device to ${path}: losetup: `);
  });
});
