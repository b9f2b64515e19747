import assert from "node:assert/strict";
import { mkdir, mkdtempDisposable, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { copyOut } from "./copy-out.ts";

const machine = { files: systemFiles, processes: systemProcesses };

/** The error of a copy that fails, which leaves nothing. */
async function refusal(directory: string, source: string, name = "copy"): Promise<PodwrightError> {
  const before = await readdir(directory);
  const failure: unknown = await copyOut(machine, source, join(directory, name), AbortSignal.any([])).catch(
    (error: unknown) => error,
  );
  assert.ok(failure instanceof PodwrightError, String(failure));
  assert.deepEqual(await readdir(directory), before);
  return failure;
}

test("a source that is no directory is named, with the reason and what to do", async () => {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-source-"));
  const [file, link] = [join(directory.path, "file"), join(directory.path, "link")];
  await writeFile(file, "");
  await symlink("nowhere", link);
  const device = "mount the device and copy the files from there, or copy them in a pod that has the claim";
  for (const [source, why, remedy] of [
    [file, "it is a file, not a directory", "put the directory back in its place"],
    [link, "there is no such directory", "mount the disk that it is on, or restore it"],
    [join(directory.path, "none"), "there is no such directory", "mount the disk that it is on, or restore it"],
    ["/dev/null", "it is a device, and only directories can be copied", device],
  ] as const) {
    for (const name of ["copy", "copy.tar"]) {
      const failure = await refusal(directory.path, source, name);
      assert.equal(failure.message, `cannot copy from ${source}: ${why}`);
      assert.equal(failure.remedy, remedy);
    }
  }
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
