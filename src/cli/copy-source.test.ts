import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtempDisposable, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import type { Processes } from "../ports/processes.ts";
import { copyOut } from "./copy-out.ts";
import { copyableDirectory } from "./copy-source.ts";

const machine = { files: systemFiles, processes: systemProcesses };

/** The error of a copy that fails, which leaves nothing. */
async function refusal(
  directory: string,
  source: string,
  { name = "copy", isOwn = false } = {},
): Promise<PodwrightError> {
  const before = await readdir(directory);
  const to = join(directory, name);
  const failure: unknown = await copyOut(machine, source, to, AbortSignal.any([]), isOwn).catch((error: unknown) => {
    return error;
  });
  assert.ok(failure instanceof PodwrightError, String(failure));
  assert.deepEqual(await readdir(directory), before);
  return failure;
}

test("a source that is no directory is named, with the reason and what to do", async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-source-"));
  const at = (name: string): string => join(directory.path, name);
  await writeFile(at("file"), "");
  await symlink("nowhere", at("link"));
  await systemProcesses.run("mkfifo", [at("pipe")], { timeoutMs: 10_000 });
  await using server = createServer().listen(at("socket"));
  await once(server, "listening");
  const restore = "mount the disk that it is on, or restore it";
  for (const [source, why, remedy, ownRemedy] of [
    [at("file"), "it is a file, not a directory", "copy the file itself", "put the directory back in its place"],
    [at("link"), "there is no such directory", restore, restore],
    [at("none"), "there is no such directory", restore, restore],
    [at("pipe"), "it is a named pipe, not a directory", undefined, "put the directory back in its place"],
    [at("socket"), "it is a socket, not a directory", undefined, "put the directory back in its place"],
    ["/dev/null", "it is a character device, not a directory", undefined, "put the directory back in its place"],
  ] as const) {
    for (const [name, isOwn] of [
      ["copy", false],
      ["copy.tar", true],
    ] as const) {
      const failure = await refusal(directory.path, source, { name, isOwn });
      assert.equal(failure.message, `cannot copy from ${source}: ${why}`);
      assert.equal(failure.remedy, isOwn ? ownRemedy : remedy);
    }
  }
});

test("of a block device the files are copied where it is mounted", async () => {
  const { files } = machine;
  const run = async () => ({ exitCode: 0, signal: undefined, stdout: "block special file", stderr: "" });
  const copyable = copyableDirectory({ files, processes: { run } }, "/dev/null", false);
  await assert.rejects(copyable, (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    assert.equal(error.message, "cannot copy from /dev/null: it is a device, and only directories can be copied");
    return error.remedy?.startsWith("mount the device and copy the files from there") === true;
  });
});

test("control characters of a source's path are not printed", async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-source-"));
  const odd = join(directory.path, "a\u001b[2J");
  const shown = join(directory.path, String.raw`a\u001b[2J`);
  assert.equal((await refusal(directory.path, odd)).message, `cannot copy from ${shown}: there is no such directory`);
  await mkdir(odd);
  const run: Processes["run"] = async (program, words, options) => {
    if (program !== "cp") return await systemProcesses.run(program, words, options);
    return { exitCode: 1, signal: undefined, stdout: "", stderr: "cp: no" };
  };
  const failing = { ...machine, processes: { ...systemProcesses, run } };
  const to = join(directory.path, "copy");
  await assert.rejects(copyOut(failing, odd, to, AbortSignal.any([])), (error: unknown) => {
    assert.ok(error instanceof PodwrightError);
    return error.message === `cannot copy ${shown} to ${to}: cp: no`;
  });
});

test("a tree that is too deep for a copy is an error of one line, and fits in an archive", async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-source-"));
  const data = join(directory.path, "data");
  const name = "d".repeat(200);
  // Built from its end, because no call takes the whole path.
  await mkdir(data);
  for (let level = 0; level < 25; level++) {
    await mkdir(join(directory.path, "next"));
    await rename(data, join(directory.path, "next", name));
    await rename(join(directory.path, "next"), data);
  }
  const failure = await refusal(directory.path, data);
  assert.match(failure.message, /^cannot copy \S+data to \S+copy: too long: '\S+data\/\.\/d+ … d+.*'$/u);
  assert.ok(failure.message.length < 600, failure.message);
  assert.match(failure.remedy ?? "", /^rename or move .*; or copy to an archive \(NAME\.tar\.gz\)/u);
  await copyOut(machine, data, join(directory.path, "copy.tar"), AbortSignal.any([]));
  const listed = await systemProcesses.run("tar", ["-tf", join(directory.path, "copy.tar")], { timeoutMs: 10_000 });
  assert.equal(listed.stdout.trim().split("\n").length, 26);
  await systemFiles.removeTree(data);
});

test("if the destination is what makes paths too long, it is to be shorter", async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-source-"));
  const name = "d".repeat(200);
  const data = join(directory.path, "data");
  let deep = data;
  while (deep.length < 3500) await mkdir((deep = join(deep, name)), { recursive: true });
  let place = join(directory.path, "place");
  while (place.length < 600) place = join(place, "e".repeat(200));
  await mkdir(place, { recursive: true });
  const failure = await refusal(place, data);
  assert.match(failure.message, /^cannot copy \S+data to \S+copy: too long: '\S+ … d+'$/u);
  assert.doesNotMatch(failure.message, /podwright-partial/u);
  assert.match(failure.remedy ?? "", /^choose a shorter destination; or copy to an archive \(NAME\.tar\.gz\)/u);
  const last = await refusal(directory.path, data, { name: "c".repeat(250) });
  assert.match(last.message, /: the destination is too long$/u);
  assert.equal(last.remedy, "choose a shorter destination");
});
