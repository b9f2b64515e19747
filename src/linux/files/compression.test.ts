import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { systemCompression } from "./compression.ts";

async function withDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-gzip-"));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function unpacked(path: string): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of systemCompression.gunzip(path)) pieces.push(piece);
  return Buffer.concat(pieces);
}

test("a file is compressed with its mode and decompressed to the same bytes", async () => {
  await withDirectory(async (directory) => {
    const [from, to] = [join(directory, "a"), join(directory, "a.gz")];
    const data = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
    await writeFile(from, data);
    await systemCompression.gzip(from, to, 0o640);
    assert.equal((await stat(to)).mode & 0o777, 0o640);
    assert.deepEqual(gunzipSync(await readFile(to)), data);
    assert.deepEqual(await unpacked(to), data);
    assert.deepEqual(await readFile(from), data, "the original stays");
  });
});

test("links, pipes and existing targets are rejected, and the target is unchanged", async () => {
  await withDirectory(async (directory) => {
    const path = (name: string): string => join(directory, name);
    await writeFile(path("there"), "old");
    await symlink(path("there"), path("link"));
    execFileSync("mkfifo", [path("pipe")]);
    await assert.rejects(systemCompression.gzip(path("link"), path("to"), 0o600), { code: "ELOOP" });
    await assert.rejects(systemCompression.gzip(path("pipe"), path("to"), 0o600), { code: "EINVAL" });
    await assert.rejects(systemCompression.gzip(path("there"), path("link"), 0o600), { code: "EEXIST" });
    await assert.rejects(unpacked(path("link")), { code: "ELOOP" });
    assert.equal(await readFile(path("there"), "utf8"), "old");
    await assert.rejects(stat(path("to")), { code: "ENOENT" });
  });
});

test("a canceled compression leaves no file", async () => {
  await withDirectory(async (directory) => {
    const [from, to] = [join(directory, "a"), join(directory, "a.gz")];
    await writeFile(from, "");
    await truncate(from, 50 << 20);
    const controller = new AbortController();
    const packed = systemCompression.gzip(from, to, 0o600, controller.signal);
    controller.abort(new Error("not wanted any more"));
    await assert.rejects(packed, /not wanted any more/);
    await assert.rejects(stat(to), { code: "ENOENT" });
  });
});

test("an error about a corrupt file names it", async () => {
  await withDirectory(async (directory) => {
    const path = join(directory, "a.gz");
    await writeFile(path, "no gzip at all");
    await assert.rejects(unpacked(path), { code: "EINVAL", path });
  });
});

test("decompression can be abandoned half-way", async () => {
  await withDirectory(async (directory) => {
    const [from, to] = [join(directory, "a"), join(directory, "a.gz")];
    await writeFile(from, Buffer.alloc(10 << 20));
    await systemCompression.gzip(from, to, 0o600);
    for await (const piece of systemCompression.gunzip(to)) {
      assert.ok(piece.length < 1 << 20);
      break;
    }
  });
});
