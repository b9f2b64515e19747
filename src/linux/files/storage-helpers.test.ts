import assert from "node:assert/strict";
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path/posix";
import { test } from "node:test";
import { HalfHangingStorage, HangingStorage, noHangingStorage } from "../../../test/support/hanging-storage.ts";
import type { GroupAccess } from "../../ports/volume-files.ts";
import { systemClock } from "../processes/clock.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import type { FarStorageFinder } from "./far-storage.ts";
import { systemFiles } from "./files.ts";
import { answerLimitMs } from "./remote-storage.ts";
import { volumeFiles } from "./volume-files.ts";

const skip = noHangingStorage ?? false;

/** As if each directory below the given one were a disk of its own. */
function everyDirectoryIsADisk(top: string): FarStorageFinder {
  const farStorageOf: FarStorageFinder["farStorageOf"] = (path) => {
    if (!path.startsWith(`${top}/`)) return undefined;
    const target = `${top}/${path.slice(top.length + 1).split("/")[0] ?? ""}`;
    return { target, lane: target, isRemote: false };
  };
  return { farStorageOf, farStorageIn: farStorageOf, farStorageBelow: () => undefined };
}

function threads(): number {
  return readdirSync("/proc/self/task").length;
}

test("another process works on files of other disks, and names what went wrong", async () => {
  using directory = testDirectory();
  const far = volumeFiles(everyDirectoryIsADisk(directory.path));
  const volume = directory.join("v");
  mkdirSync(`${volume}/a/b`, { recursive: true });
  writeFileSync(`${volume}/a/b/mark`, "inside");
  symlinkSync("/etc", `${volume}/out`);
  assert.deepEqual([await far.kind(`${volume}/a`), await far.kind(`${volume}/a/b/mark`)], ["directory", "file"]);
  assert.equal(await far.kind(`${volume}/none`), undefined);
  assert.equal(await far.groupOf(volume), lstatSync(volume).gid);
  assert.deepEqual(await far.readBeneath(volume, "a/b/mark", 10), new Uint8Array(Buffer.from("inside")));
  assert.equal(await far.readBeneath(volume, "none", 10), undefined);
  await far.create(`${volume}/c/d`, "directory");
  await far.create(`${volume}/c/file`, "file");
  await far.create(`${volume}/a/b/mark`, "file");
  const modes = ["c", "c/d", "c/file"].map((name) => lstatSync(`${volume}/${name}`).mode & 0o7777);
  assert.deepEqual([modes, lstatSync(`${volume}/a/b/mark`).size], [[0o755, 0o755, 0o644], 6]);
  await assert.rejects(far.readBeneath(volume, "a/b/mark", 2), { code: "EFBIG", name: "FileError" });
  await assert.rejects(far.openBeneath(volume, "out/x"), { code: "EXDEV", name: "FileError" });
  await assert.rejects(far.groupOf(`${volume}/none`), { code: "ENOENT", path: `${volume}/none` });
});

test("what another process has opened stays open for all until it is given back", async () => {
  using directory = testDirectory();
  const far = volumeFiles(everyDirectoryIsADisk(directory.path));
  const volume = directory.join("v");
  mkdirSync(`${volume}/a/b`, { recursive: true });
  writeFileSync(`${volume}/a/b/mark`, "inside");
  let source: string;
  {
    await using opened = await far.openBeneath(volume, "a/b");
    await using other = await far.openBeneath(volume, "a/new");
    source = opened.mountSource;
    renameSync(`${volume}/a`, `${volume}/moved`);
    assert.deepEqual([opened.isDirectory, opened.inode], [true, lstatSync(`${volume}/moved/b`).ino]);
    assert.equal(readFileSync(`${source}/mark`, "utf8"), "inside");
    assert.notEqual(dirname(other.mountSource), dirname(source), "each has a process of its own");
    assert.equal(await opened.isShownAt(`${volume}/moved/b`), true);
    assert.equal(await opened.isShownAt(`${volume}/moved/new`), false);
    assert.equal(await opened.isShownAt(`${volume}/none`), false);
  }
  assert.throws(() => readFileSync(`${source}/mark`), { code: "ENOENT" });
});

test("a path on another disk is not looked at if that is only wished for", async () => {
  using directory = testDirectory();
  const far = volumeFiles(everyDirectoryIsADisk(directory.path));
  await assert.rejects(far.kind(directory.join("disk/x"), { onlyOnOwnDisks: true }), { code: "EREMOTE" });
  assert.equal(await far.kind(directory.path, { onlyOnOwnDisks: true }), "directory");
});

test("disks that hang delay only their own volumes, however many they are", { skip }, async () => {
  using directory = testDirectory();
  using stack = new DisposableStack();
  const far = volumeFiles(everyDirectoryIsADisk(directory.path));
  const access = { gid: 1, readOnly: false, onlyOnRootMismatch: true };
  // More than there are threads for file work, and than processes that may work at a time.
  const names = Array.from({ length: 6 }, (_, index) => `disk${index}`);
  const hanging = names.map((name) => stack.use(new HangingStorage(directory.join(name))).path);
  const [one = "", ...others] = hanging;
  const works = [
    ...others.map((path) => far.openBeneath(path, "a")),
    far.kind(`${one}/x`),
    far.readBeneath(one, "x", 10),
    far.giveToGroup(one, access),
  ];
  const settled = Promise.allSettled(works);
  const beganMs = performance.now();
  writeFileSync(directory.join("near"), "n");
  mkdirSync(directory.join("well/sub"), { recursive: true });
  assert.equal(Buffer.from(await systemFiles.read(directory.join("near"), 10)).toString(), "n");
  assert.equal(await far.kind(directory.join("well/sub")), "directory");
  assert.ok(performance.now() - beganMs < answerLimitMs, "others are worked with meanwhile");
  for (const outcome of await settled) {
    assert.ok(outcome.status === "rejected");
    assert.equal(outcome.reason.code, "ETIMEDOUT");
    assert.ok(hanging.includes(outcome.reason.path));
  }
});

test("changes of group that hang on two servers leave all others alone", { skip }, async () => {
  using directory = testDirectory();
  using a = new HalfHangingStorage(directory.join("a"));
  using b = new HalfHangingStorage(directory.join("b"));
  using dead = new HangingStorage(directory.join("dead"));
  dead.end();
  const far = volumeFiles(everyDirectoryIsADisk(directory.path));
  const access = { gid: 1, readOnly: false, onlyOnRootMismatch: false };
  const controller = new AbortController();
  const gifts = [a, b].map(({ path }) => far.giveToGroup(path, access, controller.signal));
  const settled = Promise.allSettled(gifts);
  await systemClock.sleep("the gifts to hang", answerLimitMs + 1_000);
  await assert.rejects(far.kind(`${a.path}/x`), { code: "ETIMEDOUT", path: a.path });
  await assert.rejects(far.giveToGroup(b.path, access), { code: "ETIMEDOUT", path: b.path });
  await assert.rejects(far.kind(`${dead.path}/x`), { code: "ENOTCONN" });
  await assert.rejects(far.giveToGroup(dead.path, access), { code: "ENOTCONN" });
  controller.abort(new Error("enough"));
  await settled;
});

test("the group of many volumes is changed by a few threads at a time", { skip: needsRoot() }, async () => {
  using directory = testDirectory();
  const far = volumeFiles(everyDirectoryIsADisk(directory.path));
  const volumes = Array.from({ length: 24 }, (_, index) => directory.join(`v${index}`));
  for (const volume of volumes) mkdirSync(`${volume}/sub`, { recursive: true });
  const access: GroupAccess = { gid: 4321, readOnly: false, onlyOnRootMismatch: true };
  // With this process's own.
  await far.kind(directory.path);
  const before = threads();
  let most = 0;
  using stack = new DisposableStack();
  const watch = setInterval(() => (most = Math.max(most, threads() - before)), 1);
  stack.defer(() => clearInterval(watch));
  const given = await Promise.all(volumes.map((volume) => far.giveToGroup(volume, access)));
  assert.deepEqual(given, Array(24).fill(2));
  assert.ok(most > 0 && most <= 6, `${most} threads at once`);
  assert.equal(lstatSync(`${volumes[1]}/sub`).gid, 4321);
  for (let turn = 0; turn < 100 && threads() > before; turn++) await systemClock.sleep("the threads to end", 20);
  most = 0;
  assert.deepEqual(
    await Promise.all(volumes.map((volume) => far.giveToGroup(volume, access))),
    Array(24).fill(0),
    "given already",
  );
  assert.equal(most, 0, "nothing to change, no thread");
});
