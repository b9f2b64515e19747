import assert from "node:assert/strict";
import { chmod, lstat, mkdir, mkdtempDisposable, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PodwrightError } from "../base/errors.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemProcesses } from "../linux/processes/processes.ts";
import { copyOut } from "./copy-out.ts";

const never = AbortSignal.any([]);
const machine = { files: systemFiles, processes: systemProcesses };

async function withData(work: (directory: string, data: string) => Promise<void>): Promise<void> {
  await using directory = await mkdtempDisposable(join(tmpdir(), "podwright-copy-"));
  const data = join(directory.path, "data");
  await mkdir(join(data, "below"), { recursive: true });
  await writeFile(join(data, "below/file"), "content");
  await chmod(join(data, "below/file"), 0o640);
  await symlink("/etc/passwd", join(data, "link"));
  await work(directory.path, data);
}

test("a volume is copied to a new directory, with modes, and links as links", async () => {
  await withData(async (directory, data) => {
    const copy = join(directory, "copies/one");
    await copyOut(machine, data, copy, never);
    assert.deepEqual((await readdir(copy)).toSorted(), ["below", "link"]);
    assert.equal(await readFile(join(copy, "below/file"), "utf8"), "content");
    assert.equal((await lstat(join(copy, "below/file"))).mode & 0o777, 0o640);
    assert.ok((await lstat(join(copy, "link"))).isSymbolicLink());
  });
});

test("a volume is copied to an archive, compressed if it is called so", async () => {
  await withData(async (directory, data) => {
    for (const name of ["a.tar", "a.tar.gz", "a.tgz"]) {
      const archive = join(directory, name);
      await copyOut(machine, data, archive, never);
      const listed = await systemProcesses.run("tar", ["-tf", archive], { timeoutMs: 10_000 });
      assert.deepEqual(listed.stdout.split("\n").toSorted(), ["", "./", "./below/", "./below/file", "./link"]);
      assert.equal((await readFile(archive)).subarray(0, 2).toString("hex") === "1f8b", name !== "a.tar");
    }
  });
});

test("nothing is overwritten", async () => {
  await withData(async (directory, data) => {
    const archive = join(directory, "there.tar");
    await writeFile(archive, "mine");
    await assert.rejects(copyOut(machine, data, archive, never), /there.tar exists already$/u);
    assert.equal(await readFile(archive, "utf8"), "mine");
    await assert.rejects(copyOut(machine, data, data, never), /data exists already and is no empty directory/u);
  });
});

test("a copy that fails leaves no archive", async () => {
  await withData(async (directory) => {
    const archive = join(directory, "none.tar");
    await assert.rejects(copyOut(machine, join(directory, "gone"), archive, never), (error: unknown) => {
      assert.ok(error instanceof PodwrightError);
      assert.match(error.message, /cannot copy .*gone to .*none\.tar: tar: .*gone/u);
      return true;
    });
    assert.deepEqual(await readdir(directory), ["data"]);
  });
});
