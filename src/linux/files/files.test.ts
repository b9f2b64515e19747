import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FileError, type Files } from "../../ports/files.ts";
import { memoryFiles, systemFiles } from "./files.ts";
import { needsRoot, testDirectory } from "../processes/testing.ts";

function rejectsWith(code: string, promise: Promise<unknown>): Promise<void> {
  return assert.rejects(promise, (error: unknown) => error instanceof FileError && error.code === code);
}

const text = (data: Uint8Array): string => Buffer.from(data).toString("utf8");

/** Both ways to reach files do the same. */
function check(
  name: string,
  work: (files: Files) => Promise<void>,
  options: { readonly skip?: string | false } = {},
): void {
  test(`${name}: through other threads`, options, () => work(systemFiles));
  test(`${name}: at once`, options, () => work(memoryFiles));
}

check("a whole file is read up to the limit and rejected above it", async (files) => {
  using directory = testDirectory();
  const path = directory.join("file");
  writeFileSync(path, "12345");
  assert.equal(text(await files.read(path, 5)), "12345");
  await rejectsWith("EFBIG", files.read(path, 4));
  writeFileSync(path, "");
  assert.equal((await files.read(path, 0)).length, 0);
  writeFileSync(path, "x".repeat(300_000));
  assert.equal((await files.read(path, 1_000_000)).length, 300_000);
});

check("files that report no size are read whole, and rejected when too long", async (files) => {
  assert.equal(text(await files.read("/proc/self/comm", 100)), readFileSync("/proc/self/comm", "utf8"));
  await rejectsWith("EFBIG", files.read("/proc/self/status", 10));
});

check("a range stops at the end of the file", async (files) => {
  using directory = testDirectory();
  const path = directory.join("file");
  writeFileSync(path, "0123456789");
  assert.equal(text(await files.readRange(path, 3, 4)), "3456");
  assert.equal(text(await files.readRange(path, 8, 10)), "89");
  assert.equal(text(await files.readRange(path, 50, 10)), "");
});

check("a range can be read into an existing buffer, unless that is too small", async (files) => {
  using directory = testDirectory();
  const path = directory.join("file");
  writeFileSync(path, "0123456789");
  const into = new Uint8Array(6);
  assert.equal(text(await files.readRange(path, 2, 4, { into })), "2345");
  assert.equal(text(into), "2345\0\0");
  assert.equal(text(await files.readRange(path, 0, 8, { into })), "01234567");
});

check("directories and pipes are rejected instead of blocking", async (files) => {
  using directory = testDirectory();
  execFileSync("mkfifo", [directory.join("pipe")]);
  await rejectsWith("EINVAL", files.read(directory.join("pipe"), 10));
  await rejectsWith("ENXIO", files.write(directory.join("pipe"), "x", 0o600));
  await rejectsWith("EISDIR", files.read(directory.path, 10));
});

check("an error carries the errno and the path", async (files) => {
  const path = "/no/such/file";
  await assert.rejects(files.read(path, 10), (error: unknown) => {
    assert.ok(error instanceof FileError);
    assert.equal(error.code, "ENOENT");
    assert.equal(error.path, path);
    assert.match(error.message, /no such file.*\/no\/such\/file/);
    return true;
  });
  await rejectsWith("EINVAL", files.read("relative", 10));
});

check(
  "an atomic write replaces the file with the exact mode, whatever the umask, and leaves nothing beside it",
  async (files) => {
    using directory = testDirectory();
    const path = directory.join("file");
    const umask = process.umask(0o077);
    try {
      await files.writeAtomic(path, "first", 0o644);
      const { ino } = statSync(path);
      await files.writeAtomic(path, new Uint8Array([1, 2]), 0o666);
      assert.notEqual(statSync(path).ino, ino);
    } finally {
      process.umask(umask);
    }
    assert.equal(statSync(path).mode & 0o7777, 0o666);
    assert.deepEqual([...readFileSync(path)], [1, 2]);
    assert.deepEqual(readdirSync(directory.path), ["file"]);
  },
);

check("an atomic write replaces a symbolic link itself, and a failed one leaves nothing behind", async (files) => {
  using directory = testDirectory();
  writeFileSync(directory.join("target"), "untouched");
  symlinkSync("target", directory.join("link"));
  await files.writeAtomic(directory.join("link"), "new", 0o600);
  assert.equal((await files.stat(directory.join("link")))?.type, "file");
  assert.equal(readFileSync(directory.join("target"), "utf8"), "untouched");

  mkdirSync(directory.join("directory"));
  await assert.rejects(files.writeAtomic(directory.join("directory"), "new", 0o600), FileError);
  assert.deepEqual(readdirSync(directory.path).toSorted(), ["directory", "link", "target"]);
});

check("writing in place keeps the inode, cuts the old text and sets the mode", async (files) => {
  using directory = testDirectory();
  const path = directory.join("file");
  await files.write(path, "a longer text", 0o666);
  const { ino } = statSync(path);
  await files.write(path, "short", 0o640);
  assert.equal(statSync(path).ino, ino);
  assert.equal(statSync(path).mode & 0o7777, 0o640);
  assert.equal(readFileSync(path, "utf8"), "short");
});

test("new files have their exact mode, whatever the umask", async () => {
  using directory = testDirectory();
  for (const umask of ["000", "022", "077"]) {
    const script = `
      const { systemFiles: files } = await import(${JSON.stringify(join(import.meta.dirname, "files.ts"))});
      for (const mode of [0o600, 0o644, 0o666]) await files.write(process.argv[1] + "-" + mode.toString(8), "text", mode);
      for (const mode of [0o700, 0o755, 0o777, 0o1777]) await files.makeDirectory(process.argv[1] + "-" + mode.toString(8), mode);
    `;
    const node = [process.execPath, "--no-warnings", "--input-type=module", "--eval", script, directory.join(umask)];
    execFileSync("sh", ["-c", `umask ${umask}; exec "$@"`, "sh", ...node]);
    for (const mode of [0o600, 0o644, 0o666, 0o700, 0o755, 0o777, 0o1777]) {
      const name = `${umask}-${mode.toString(8)}`;
      assert.equal(statSync(directory.join(name)).mode & 0o7777, mode, name);
    }
  }
});

check("writing and appending reject a final symbolic link", async (files) => {
  using directory = testDirectory();
  writeFileSync(directory.join("target"), "untouched");
  symlinkSync("target", directory.join("link"));
  await rejectsWith("ELOOP", files.write(directory.join("link"), "x", 0o600));
  await rejectsWith("ELOOP", files.append(directory.join("link"), "x", 0o600));
  assert.equal(readFileSync(directory.join("target"), "utf8"), "untouched");
});

check("appending creates the file with the mode and then keeps its content", async (files) => {
  using directory = testDirectory();
  const path = directory.join("file");
  await files.append(path, "one\n", 0o622);
  assert.equal(statSync(path).mode & 0o7777, 0o622);
  await files.chmod(path, 0o600);
  await files.append(path, "two\n", 0o622);
  assert.equal(readFileSync(path, "utf8"), "one\ntwo\n");
  assert.equal(statSync(path).mode & 0o7777, 0o600);
});

check("directories are made with their parents and the exact mode; existing ones stay unchanged", async (files) => {
  using directory = testDirectory();
  mkdirSync(directory.join("existing"), 0o700);
  const umask = process.umask(0o077);
  try {
    await files.makeDirectory(directory.join("existing", "a", "b"), 0o757);
  } finally {
    process.umask(umask);
  }
  await files.makeDirectory(directory.join("existing"), 0o777);
  const mode = (...names: string[]): number => statSync(directory.join(...names)).mode & 0o7777;
  assert.deepEqual([mode("existing"), mode("existing", "a"), mode("existing", "a", "b")], [0o700, 0o757, 0o757]);

  symlinkSync("existing", directory.join("link"));
  await files.makeDirectory(directory.join("link"), 0o700);
  writeFileSync(directory.join("file"), "");
  await rejectsWith("EEXIST", files.makeDirectory(directory.join("file"), 0o700));
  await rejectsWith("ENOENT", files.makeDirectory("/proc/podwright/state", 0o700));
  symlinkSync(directory.join("nowhere"), directory.join("dangling"));
  await rejectsWith("ENOENT", files.makeDirectory(directory.join("dangling", "a"), 0o700));
});

check("a listing names entries and their types, and is empty for a missing directory", async (files) => {
  using directory = testDirectory();
  writeFileSync(directory.join("file"), "");
  mkdirSync(directory.join("directory"));
  symlinkSync("nowhere", directory.join("link"));
  execFileSync("mkfifo", [directory.join("pipe")]);
  const entries = await files.list(directory.path);
  assert.deepEqual(
    entries.toSorted((a, b) => a.name.localeCompare(b.name)),
    [
      { name: "directory", type: "directory" },
      { name: "file", type: "file" },
      { name: "link", type: "symlink" },
      { name: "pipe", type: "other" },
    ],
  );
  assert.deepEqual(await files.list(directory.join("missing")), []);
  await rejectsWith("ENOTDIR", files.list(directory.join("file")));
});

check("stat describes the link itself, and is undefined for a missing path", async (files) => {
  using directory = testDirectory();
  const path = directory.join("file");
  writeFileSync(path, "");
  truncateSync(path, 12);
  await files.chmod(path, 0o4711);
  const info = await files.stat(path);
  const actual = statSync(path);
  assert.deepEqual(info, {
    type: "file",
    size: 12,
    mode: 0o4711,
    modified: actual.mtimeMs,
    inode: actual.ino,
    device: actual.dev,
  });
  await files.symlink("missing", directory.join("link"));
  assert.equal((await files.stat(directory.join("link")))?.type, "symlink");
  assert.equal(await files.readLink(directory.join("link")), "missing");
  assert.equal(await files.stat(directory.join("missing")), undefined);
  assert.equal(await files.stat(`${path}/below-a-file`), undefined);
});

check("remove takes a file, a link or an empty directory, and nothing else", async (files) => {
  using directory = testDirectory();
  mkdirSync(directory.join("full"));
  writeFileSync(directory.join("full", "file"), "");
  mkdirSync(directory.join("empty"));
  symlinkSync("full", directory.join("link"));
  await files.remove(directory.join("link"));
  await files.remove(directory.join("empty"));
  await files.remove(directory.join("missing"));
  await rejectsWith("ENOTEMPTY", files.remove(directory.join("full")));
  await files.remove(directory.join("full", "file"));
  assert.deepEqual(readdirSync(directory.path), ["full"]);
});

check(
  "files are renamed, real paths resolved and owners changed",
  async (files) => {
    using directory = testDirectory();
    writeFileSync(directory.join("old"), "text");
    await files.rename(directory.join("old"), directory.join("new"));
    await files.symlink(directory.join("new"), directory.join("link"));
    assert.equal(await files.realPath(directory.join("link")), directory.join("new"));
    await files.chown(directory.join("new"), 12, 34);
    const { uid, gid } = statSync(directory.join("new"));
    assert.deepEqual([uid, gid], [12, 34]);
  },
  { skip: needsRoot() },
);

check("two that make the same directory at once both succeed, and a next one makes it again", async (files) => {
  using directory = testDirectory();
  const path = directory.join("a", "b");
  await Promise.all([files.makeDirectory(path, 0o750), files.makeDirectory(path, 0o750)]);
  assert.ok(statSync(path).isDirectory());
  await files.remove(path);
  await files.makeDirectory(path, 0o750);
  assert.ok(statSync(path).isDirectory());
  writeFileSync(directory.join("file"), "");
  const there = [
    files.makeDirectory(directory.join("file"), 0o750),
    files.makeDirectory(directory.join("file"), 0o750),
  ];
  for (const each of there) await rejectsWith("EEXIST", each);
});
