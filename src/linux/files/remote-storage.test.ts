import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { HalfHangingStorage, HangingStorage, noHangingStorage } from "../../../test/support/hanging-storage.ts";
import { FileError } from "../../ports/files.ts";
import { errnoOf } from "../file-error.ts";
import { systemClock } from "../processes/clock.ts";
import { testDirectory } from "../processes/testing.ts";
import { systemFiles } from "./files.ts";
import { recentMountTable } from "./mount-table.ts";
import { answerLimitMs, isRemote, mountAnswers, remoteMountOf, usageOf } from "./remote-storage.ts";
import { systemVolumeFiles } from "./volume-files.ts";

const skip = noHangingStorage ?? false;

test("usage equals statfs", async () => {
  using directory = testDirectory();
  const { blocks, bsize, files } = statfsSync(directory.path);
  const usage = await usageOf(directory.path);
  assert.deepEqual([usage.capacityBytes, usage.inodes], [blocks * bsize, files]);
  assert.ok(usage.usedBytes > 0 && usage.availableBytes <= usage.capacityBytes - usage.usedBytes);
  await assert.rejects(usageOf(directory.join("missing")), { code: "ENOENT" });
});

test("file systems that depend on a server or a process are recognized by type", () => {
  assert.deepEqual(["nfs4", "fuse", "fuse.sshfs", "cifs", "ceph", "9p"].map(isRemote), Array(6).fill(true));
  assert.deepEqual(["ext4", "tmpfs", "overlay", "fusectl", "xfs"].map(isRemote), Array(5).fill(false));
});

test("a path's way to remote storage is found over links, without accessing the storage", () => {
  using directory = testDirectory();
  const far = directory.join("far");
  mkdirSync(far);
  mkdirSync(directory.join("near"));
  symlinkSync(`${far}/deep`, directory.join("absolute"));
  symlinkSync("../far/x", directory.join("near/relative"));
  symlinkSync("loop", directory.join("loop"));
  const remote = new Set([far]);
  const through = (name: string): string | undefined => remoteMountOf(directory.join(name), remote);
  assert.deepEqual(
    [through("far"), through("far/a/b"), through("absolute/c"), through("near/relative")],
    [...Array<string>(4).fill(far)],
  );
  assert.deepEqual([through("near"), through("loop"), through("missing/x")], [...Array<undefined>(3).fill(undefined)]);
  assert.equal(remoteMountOf(`${directory.path}/near/../far`, remote), far);
  assert.equal(remoteMountOf("/", remote), undefined);
});

test(
  "an access to storage that does not respond is abandoned and not repeated, and delays no other work",
  { skip },
  async () => {
    using directory = testDirectory();
    using hanging = new HangingStorage(directory.join("far"));
    symlinkSync(`${hanging.path}/x`, directory.join("link"));
    writeFileSync(directory.join("near"), "n");
    const timedOut = { code: "ETIMEDOUT", path: hanging.path };
    // More than there are threads for file work.
    const asked = [
      ...Array.from({ length: 4 }, () => systemVolumeFiles.kind(directory.join("link"))),
      systemVolumeFiles.usage(hanging.path),
      systemVolumeFiles.openBeneath(hanging.path, "a"),
      systemVolumeFiles.readBeneath(hanging.path, "a", 10),
      systemVolumeFiles.giveToGroup(hanging.path, { gid: 1, readOnly: false, onlyOnRootMismatch: false }),
    ];
    const settled = Promise.allSettled(asked);
    const beganMs = performance.now();
    assert.equal(Buffer.from(await systemFiles.read(directory.join("near"), 10)).toString(), "n");
    assert.equal(await systemVolumeFiles.kind(directory.join("near")), "file");
    assert.ok(performance.now() - beganMs < 5000, "other files are worked with meanwhile");
    for (const outcome of await settled) {
      assert.ok(outcome.status === "rejected");
      assert.deepEqual({ code: outcome.reason.code, path: outcome.reason.path }, timedOut);
    }
  },
);

test("the error of a dead server counts as a response", { skip }, async () => {
  using directory = testDirectory();
  using dead = new HangingStorage(directory.join("far"));
  dead.end();
  await mountAnswers(dead.path);
  await assert.rejects(systemVolumeFiles.kind(`${dead.path}/x`), { code: "ENOTCONN" });
  await assert.rejects(usageOf(dead.path), { code: "ENOTCONN" });
  assert.ok(readFileSync("/proc/self/mountinfo", "utf8").includes(dead.path));
});

test("a new mount is recognized, even if its mount table was read just before", { skip }, async () => {
  using directory = testDirectory();
  assert.equal(remoteMountOf(directory.path), undefined);
  recentMountTable();
  using hanging = new HangingStorage(directory.join("far"));
  assert.equal(remoteMountOf(`${hanging.path}/x`), hanging.path);
});

test("a wait for storage ends with its signal", { skip }, async () => {
  using directory = testDirectory();
  using hanging = new HangingStorage(directory.join("far"));
  const controller = new AbortController();
  const asked = usageOf(hanging.path, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(asked, /enough/);
});

test("storage that hangs after its response blocks one thread, and others get an error", { skip }, async () => {
  using directory = testDirectory();
  using half = new HalfHangingStorage(directory.join("far"));
  const usage = { capacityBytes: 4_096_000, availableBytes: 2_048_000, usedBytes: 1_638_400 };
  assert.deepEqual(await systemVolumeFiles.usage(half.path), { ...usage, inodes: 50, inodesFree: 20 });
  const first = systemVolumeFiles.kind(`${half.path}/x`);
  first.catch(() => {});
  await systemClock.sleep("it to be late", answerLimitMs + 500);
  await assert.rejects(systemVolumeFiles.kind(`${half.path}/y`), { code: "ETIMEDOUT", path: half.path });
  await assert.rejects(systemVolumeFiles.openBeneath(half.path, "z"), { code: "ETIMEDOUT" });
  half.end();
  await assert.rejects(first, { code: "ECONNABORTED" });
  await assert.rejects(systemVolumeFiles.kind(`${half.path}/y`), { code: "ENOTCONN" });
});

test("a change of group in storage that hangs after its response blocks no other work", { skip }, async () => {
  using directory = testDirectory();
  writeFileSync(directory.join("near"), "n");
  using half = new HalfHangingStorage(directory.join("far"));
  const canceling = new AbortController();
  const access = { gid: 1, readOnly: false, onlyOnRootMismatch: true };
  // More than there are threads for file work.
  const gifts = Array.from({ length: 5 }, () => systemVolumeFiles.giveToGroup(half.path, access, canceling.signal));
  const settled = Promise.allSettled(gifts);
  await systemClock.sleep("the gifts to hang", answerLimitMs + 2_000);
  const beganMs = performance.now();
  assert.equal(Buffer.from(await systemFiles.read(directory.join("near"), 10)).toString(), "n");
  assert.ok(performance.now() - beganMs < 5000, "other files are worked with meanwhile");
  await assert.rejects(systemVolumeFiles.giveToGroup(half.path, access), { code: "ETIMEDOUT", path: half.path });
  canceling.abort(new Error("enough"));
  for (const outcome of await settled) assert.match(String(outcome.status === "rejected" && outcome.reason), /enough/);
  // Their threads still hang.
  await assert.rejects(systemVolumeFiles.kind(`${half.path}/x`), { code: "ETIMEDOUT", path: half.path });
  half.end();
  const again = async (): Promise<unknown> =>
    await systemVolumeFiles.giveToGroup(half.path, access).catch((error: unknown) => error);
  let outcome = await again();
  // The threads return one after another.
  for (let turn = 0; turn < 100 && errnoOf(outcome) === "ETIMEDOUT"; turn++) {
    await systemClock.sleep("the threads that hung", 20);
    outcome = await again();
  }
  assert.ok(outcome instanceof FileError);
  assert.deepEqual([outcome.code, outcome.path], ["ENOTCONN", half.path]);
});
