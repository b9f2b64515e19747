import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { FileError } from "../../ports/files.ts";
import { systemClock } from "../processes/clock.ts";
import { testDirectory } from "../processes/testing.ts";
import { watchDirectory } from "./watch.ts";

/** A watch that counts its calls, and the time within which a change must be noticed. */
function watched(path: string): { changes: number; readonly errors: Error[] } & Disposable {
  const errors: Error[] = [];
  const watch = watchDirectory(
    path,
    () => counted.changes++,
    (error) => errors.push(error),
  );
  const counted = { changes: 0, errors, [Symbol.dispose]: () => watch[Symbol.dispose]() };
  return counted;
}

const settle = (): Promise<void> => systemClock.sleep("changes to be noticed", 150);

async function until(condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 200 && !condition(); attempt++) await systemClock.sleep("a change", 10);
  assert.ok(condition());
}

test("a burst of changes makes one call, and later changes make another", async () => {
  using directory = testDirectory();
  using watch = watched(directory.path);
  await settle();
  assert.equal(watch.changes, 0);
  for (let file = 0; file < 50; file++) writeFileSync(directory.join(`file${file}`), "text");
  await until(() => watch.changes > 0);
  await settle();
  assert.equal(watch.changes, 1);

  renameSync(directory.join("file1"), directory.join("file2"));
  await until(() => watch.changes === 2);
  assert.deepEqual(watch.errors, []);
});

test("an atomic replacement of a file is noticed every time", async () => {
  using directory = testDirectory();
  using watch = watched(directory.path);
  for (let round = 1; round <= 3; round++) {
    writeFileSync(directory.join("new"), `${round}`);
    renameSync(directory.join("new"), directory.join("file"));
    await until(() => watch.changes === round);
    await settle();
  }
});

test("a missing directory ends the watch with an error, asynchronously", async () => {
  using directory = testDirectory();
  using watch = watched(directory.join("missing"));
  assert.equal(watch.errors.length, 0);
  await until(() => watch.errors.length > 0);
  const [error] = watch.errors;
  assert.ok(error instanceof FileError && error.code === "ENOENT");
});

test("a directory that is removed or replaced ends the watch with one error", async () => {
  for (const replaced of [false, true]) {
    using directory = testDirectory();
    const path = directory.join("watched");
    mkdirSync(path);
    using watch = watched(path);
    if (replaced) {
      mkdirSync(directory.join("other"));
      renameSync(directory.join("other"), path);
    } else {
      rmdirSync(path);
    }
    await until(() => watch.errors.length > 0);
    await settle();
    assert.equal(watch.errors.length, 1);
    assert.equal(watch.changes, 0);
  }
});

test("a disposed watch is silent, also during a burst", async () => {
  using directory = testDirectory();
  const watch = watched(directory.path);
  writeFileSync(directory.join("file"), "");
  await systemClock.sleep("the event to arrive", 5);
  watch[Symbol.dispose]();
  writeFileSync(directory.join("other"), "");
  await settle();
  assert.equal(watch.changes, 0);
  assert.deepEqual(watch.errors, []);
});
