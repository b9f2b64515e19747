import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { testDirectory } from "../processes/testing.ts";
import { openWithin } from "./open-within.ts";

test("a file is read in parts, whatever its path leads to meanwhile", async () => {
  using directory = testDirectory();
  const root = directory.join("log");
  mkdirSync(`${root}/app`, { recursive: true });
  mkdirSync(directory.join("node"));
  writeFileSync(`${root}/app/0.log`, "the pod's lines");
  writeFileSync(directory.join("node/0.log"), "what the node has");
  await using opened = await openWithin(root, "app/0.log");
  const read = async (offset: number, length: number): Promise<string> =>
    Buffer.from(await opened.read(offset, length)).toString();
  assert.deepEqual([opened.type, opened.size], ["file", 15]);
  assert.equal(await read(0, 4), "the ");
  renameSync(`${root}/app`, `${root}/moved`);
  symlinkSync(directory.join("node"), `${root}/app`);
  assert.equal(await read(4, 100), "pod's lines");
  assert.equal(await read(15, 100), "");
  await assert.rejects(openWithin(root, "app/0.log"), { code: "EXDEV" });
});

test("links are followed in the directory, by its real name too, and never out of it", async () => {
  using directory = testDirectory();
  const root = directory.join("log");
  mkdirSync(directory.join("disk/pods"), { recursive: true });
  symlinkSync("disk", root);
  writeFileSync(`${root}/pods/0.log`, "lines");
  symlinkSync(`${root}/pods`, `${root}/containers`);
  symlinkSync(directory.join("disk/pods"), `${root}/real`);
  symlinkSync("../pods/0.log", `${root}/pods/current`);
  symlinkSync("/etc", `${root}/out`);
  symlinkSync("../log", `${root}/up`);
  for (const path of ["pods/0.log", "containers/0.log", "real/0.log", "containers/current"]) {
    await using opened = await openWithin(root, path);
    assert.equal(opened.size, 5, path);
  }
  for (const path of ["out", "out/passwd", "up", ".."]) {
    await assert.rejects(openWithin(root, path), { code: "EXDEV" }, path);
  }
  await assert.rejects(openWithin(root, "none"), { code: "ENOENT" });
});

test("a directory is listed, and a pipe is not opened", async () => {
  using directory = testDirectory();
  mkdirSync(directory.join("below"));
  execFileSync("mkfifo", [directory.join("pipe")]);
  symlinkSync("pipe", directory.join("link"));
  await using opened = await openWithin(directory.path, "");
  const found = (await opened.list()).map(({ name, type }) => `${name} ${type}`).toSorted();
  assert.deepEqual([opened.type, ...found], ["directory", "below directory", "link symlink", "pipe other"]);
  await using pipe = await openWithin(directory.path, "link");
  assert.equal(pipe.type, "other");
  await assert.rejects(pipe.read(0, 1), { code: "EINVAL" });
});

test("nothing stays open", async () => {
  using directory = testDirectory();
  writeFileSync(directory.join("file"), "");
  const before = readdirSync("/proc/self/fd").length;
  for (let round = 0; round < 20; round++) {
    await using _opened = await openWithin(directory.path, "file");
    await assert.rejects(openWithin(directory.path, "file/below"), { code: "ENOTDIR" });
  }
  assert.equal(readdirSync("/proc/self/fd").length, before);
});
