import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { FileError } from "../ports/files.ts";
import { MemoryFiles } from "./files.ts";

const text = async (files: MemoryFiles, path: string): Promise<string> =>
  new TextDecoder().decode(await files.read(path, 1000));
const code = (expected: string) => (error: unknown) => error instanceof FileError && error.code === expected;

async function filled(): Promise<MemoryFiles> {
  const files = new MemoryFiles(new ManualClock());
  await files.makeDirectory("/a/b", 0o700);
  await files.write("/a/b/f", "one", 0o600);
  return files;
}

test("files are written, appended to, replaced and removed", async () => {
  const files = await filled();
  const { inode } = (await files.stat("/a/b/f")) ?? {};
  await files.append("/a/b/f", " two", 0o644);
  assert.equal(await text(files, "/a/b/f"), "one two");
  assert.equal((await files.stat("/a/b/f"))?.inode, inode);
  await files.writeAtomic("/a/b/f", "three", 0o640);
  const info = await files.stat("/a/b/f");
  assert.deepEqual([info?.size, info?.mode, info?.inode === inode], [5, 0o640, false]);
  await files.remove("/a/b/f");
  await files.remove("/a/b/f");
  assert.equal(await files.stat("/a/b/f"), undefined);
});

test("directories list their contents, and are removed only when empty or as a tree", async () => {
  const files = await filled();
  await files.symlink("b/f", "/a/link");
  assert.deepEqual(await files.list("/a"), [
    { name: "b", type: "directory" },
    { name: "link", type: "symlink" },
  ]);
  assert.deepEqual(await files.list("/none"), []);
  await assert.rejects(files.remove("/a/b"), code("ENOTEMPTY"));
  await files.removeTree("/a");
  assert.equal(await files.stat("/a/b/f"), undefined);
  await files.removeTree("/a/b");
});

test("links are followed in parents and when reading, but not when writing", async () => {
  const files = await filled();
  await files.symlink("/a/b", "/dir");
  await files.symlink("../a/b/f", "/a/link");
  assert.equal(await text(files, "/dir/f"), "one");
  assert.equal(await text(files, "/a/link"), "one");
  assert.equal(await files.realPath("/dir/f"), "/a/b/f");
  assert.equal((await files.stat("/a/link"))?.type, "symlink");
  await assert.rejects(files.write("/a/link", "x", 0o600), code("ELOOP"));
  await files.symlink("/loop", "/loop");
  await assert.rejects(files.read("/loop", 1), code("ELOOP"));
});

test("a renamed directory keeps its files", async () => {
  const files = await filled();
  await files.rename("/a", "/z");
  assert.equal(await text(files, "/z/b/f"), "one");
  await assert.rejects(files.read("/a/b/f", 10), code("ENOENT"));
});

test("errors have the system's errno", async () => {
  const files = await filled();
  await assert.rejects(files.read("/a/b/f", 2), code("EFBIG"));
  await assert.rejects(files.read("/a", 2), code("EISDIR"));
  await assert.rejects(files.write("/none/f", "x", 0o600), code("ENOENT"));
  await assert.rejects(files.write("/a/b/f/x", "x", 0o600), code("ENOTDIR"));
  await assert.rejects(files.symlink("x", "/a/b/f"), code("EEXIST"));
});

test("a watch reports changes in its directory once per burst, and the directory's end", async () => {
  const clock = new ManualClock();
  const files = new MemoryFiles(clock);
  await files.makeDirectory("/w/deep", 0o755);
  const heard: string[] = [];
  const watch = files.watch(
    "/w",
    () => heard.push("change"),
    (error) => heard.push(error.name),
  );
  await files.write("/w/a", "1", 0o600);
  await files.write("/w/b", "1", 0o600);
  assert.deepEqual(heard, []);
  await clock.advance(0);
  assert.deepEqual(heard, ["change"]);
  await files.write("/w/deep/c", "1", 0o600);
  await clock.advance(0);
  assert.deepEqual(heard, ["change"]);
  await files.removeTree("/w");
  await clock.advance(0);
  assert.deepEqual(heard, ["change", "FileError"]);
  watch[Symbol.dispose]();
  assert.deepEqual(clock.waits, []);
});
