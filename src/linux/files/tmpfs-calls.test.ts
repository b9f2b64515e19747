import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { systemMounts } from "./mounts.ts";
import { systemProcesses } from "../processes/processes.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";
import { areOfTmpfs, tmpfsCalls } from "./tmpfs-calls.ts";

const calls = tmpfsCalls();
const skip = needsRoot() || (calls === undefined ? `Node.js ${process.version} has no node:ffi` : false);

test("the calls mount as mount(8) does, and unmount again", { skip }, async () => {
  using directory = testDirectory();
  const [ours, theirs] = [directory.join("ours"), directory.join("theirs")];
  mkdirSync(ours);
  mkdirSync(theirs);
  try {
    assert.equal(calls?.mount("tmpfs", ours, "size=1048576"), true);
    const arguments_ = ["--no-canonicalize", "-t", "tmpfs", "-o", "size=1048576", "--", "tmpfs", theirs];
    const result = await systemProcesses.run("mount", arguments_, { timeoutMs: 10_000 });
    assert.equal(result.exitCode, 0, result.stderr);
    const [one, other] = (await systemMounts.list())
      .filter(({ target }) => [ours, theirs].includes(target))
      // Each is a file system of its own.
      .map((mount) => ({ ...mount, target: "", device: "" }));
    assert.deepEqual(one, other);
    assert.equal(one?.fileSystem, "tmpfs");
  } finally {
    for (const target of [ours, theirs]) calls?.unmount(target);
  }
  assert.deepEqual(
    (await systemMounts.list()).filter(({ target }) => [ours, theirs].includes(target)),
    [],
  );
});

test("failures are reported, and a link is not followed", { skip }, async () => {
  using directory = testDirectory();
  const target = directory.join("mounted");
  mkdirSync(target);
  symlinkSync(target, directory.join("link"));
  assert.equal(calls?.mount("tmpfs", directory.join("missing"), ""), false);
  assert.equal(calls?.mount("tmpfs", target, "size=nonsense"), false);
  assert.equal(calls?.unmount(target), false);
  assert.equal(calls?.mount("tmpfs", target, ""), true);
  try {
    assert.equal(calls?.unmount(directory.join("link")), false);
  } finally {
    assert.equal(calls?.unmount(target), true);
  }
});

test("a Node.js without node:ffi, or with another C library, has no such calls", () => {
  assert.equal(
    tmpfsCalls(() => undefined),
    undefined,
  );
  function library(path: string): never {
    throw new Error(`${path}: cannot open shared object file`);
  }
  assert.equal(
    tmpfsCalls(() => ({ DynamicLibrary: library })),
    undefined,
  );
});

test("options known only to mount(8) are left to it", () => {
  assert.equal(areOfTmpfs([]), true);
  assert.equal(areOfTmpfs(["size=65536", "noswap"]), true);
  for (const option of ["ro", "nodev", "mode=700", "size=50%", "size=1k"]) assert.equal(areOfTmpfs([option]), false);
});
