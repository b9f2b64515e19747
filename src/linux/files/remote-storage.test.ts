import assert from "node:assert/strict";
import { mkdirSync, readFileSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { HalfHangingStorage, HangingStorage, noHangingStorage } from "../../../test/support/hanging-storage.ts";
import { errnoOf } from "../file-error.ts";
import { systemClock } from "../processes/clock.ts";
import { testDirectory } from "../processes/testing.ts";
import { systemFiles } from "./files.ts";
import { answerLimitMs, mountAnswers, usageOf } from "./remote-storage.ts";
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

test("a wait for storage ends with its signal", { skip }, async () => {
  using directory = testDirectory();
  using hanging = new HangingStorage(directory.join("far"));
  const controller = new AbortController();
  const asked = usageOf(hanging.path, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(asked, /enough/);
});

test("storage that hangs after its response blocks no thread, and others get an error", { skip }, async () => {
  using directory = testDirectory();
  using half = new HalfHangingStorage(directory.join("far"));
  const usage = { capacityBytes: 4_096_000, availableBytes: 2_048_000, usedBytes: 1_638_400 };
  assert.deepEqual(await systemVolumeFiles.usage(half.path), { ...usage, inodes: 50, inodesFree: 20 });
  const timedOut = { code: "ETIMEDOUT", path: half.path };
  const beganMs = performance.now();
  await assert.rejects(systemVolumeFiles.kind(`${half.path}/x`), timedOut);
  assert.ok(performance.now() - beganMs >= answerLimitMs);
  // The killed process waits for the server that has its request.
  const refusedMs = performance.now();
  await assert.rejects(systemVolumeFiles.kind(`${half.path}/y`), timedOut);
  await assert.rejects(systemVolumeFiles.openBeneath(half.path, "z"), timedOut);
  assert.ok(performance.now() - refusedMs < 1_000, "nothing else is tried meanwhile");
  half.end();
  assert.equal(await codeOnceAnswered(() => systemVolumeFiles.kind(`${half.path}/y`)), "ENOTCONN");
});

/** The error of work in storage once what hung there has ended. */
async function codeOnceAnswered(work: () => Promise<unknown>): Promise<string | undefined> {
  const codeOf = async (): Promise<string | undefined> => {
    return await work().then(
      () => undefined,
      (error: unknown) => errnoOf(error),
    );
  };
  let code = await codeOf();
  for (let turn = 0; turn < 100 && code === "ETIMEDOUT"; turn++) {
    await systemClock.sleep("what hung", 20);
    code = await codeOf();
  }
  return code;
}

test("changes of group in storage that hangs after its response delay nothing else", { skip }, async () => {
  using directory = testDirectory();
  mkdirSync(directory.join("near"));
  using half = new HalfHangingStorage(directory.join("far"));
  const canceling = new AbortController();
  const access = { gid: 1, readOnly: false, onlyOnRootMismatch: false };
  // More than there are threads for file work, and places for threads like these.
  const gifts = Array.from({ length: 9 }, () => systemVolumeFiles.giveToGroup(half.path, access, canceling.signal));
  const settled = Promise.allSettled(gifts);
  await systemClock.sleep("the gifts to hang", answerLimitMs + 2_000);
  const beganMs = performance.now();
  assert.equal(await systemVolumeFiles.kind(directory.join("near")), "directory");
  assert.ok(performance.now() - beganMs < 5000, "other files are worked with meanwhile");
  using other = new HalfHangingStorage(directory.join("other"));
  const fromOther = systemVolumeFiles.kind(`${other.path}/x`);
  fromOther.catch(() => {});
  await assert.rejects(systemVolumeFiles.giveToGroup(half.path, access), { code: "ETIMEDOUT", path: half.path });
  await assert.rejects(systemVolumeFiles.kind(`${half.path}/x`), { code: "ETIMEDOUT", path: half.path });
  other.end();
  await assert.rejects(fromOther, ({ code }) => ["ECONNABORTED", "ENOTCONN"].includes(code), "the other one was asked");
  canceling.abort(new Error("enough"));
  const why = (await settled).map((outcome) => String(outcome.status === "rejected" && outcome.reason));
  assert.ok(why.filter((reason) => reason.includes("enough")).length >= 4, why.join("\n"));
  half.end();
  assert.equal(await codeOnceAnswered(() => systemVolumeFiles.giveToGroup(half.path, access)), "ENOTCONN");
});
