import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { version } from "../../src/base/version.ts";
import { until } from "../support/podwright.ts";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);
let clone = "";

/** @returns the names and digests that it prints */
async function release(out: string): Promise<string> {
  return (await run(process.execPath, ["scripts/release.ts", "--out", out], { cwd: clone })).stdout;
}

before(async () => {
  // A release is made of a commit, and the tests run also on what is not committed yet.
  clone = await mkdtemp(join(tmpdir(), "podwright-release-"));
  await run("git", ["clone", "--quiet", "--no-hardlinks", root, clone]);
  await cp(join(root, "scripts"), join(clone, "scripts"), { recursive: true });
  await symlink(await realpath(join(root, "node_modules")), join(clone, "node_modules"));
  const author = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
  await run("git", ["add", "--all"], { cwd: clone });
  await run("git", [...author, "commit", "--quiet", "--no-verify", "--allow-empty", "-m", "Test"], { cwd: clone });
});

after(async () => rm(clone, { recursive: true, force: true }));

test("a release is the packages, the bill of materials and their checksums, equal each time", async () => {
  const first = await release("out");
  const names = first.split("\n").flatMap((line) => line.split("  ")[1] ?? []);
  const kinds = names.map((name) => name.replace(version, "VERSION").replace(/_[^_]*\.deb$/u, "_ARCH.deb"));
  assert.deepEqual(kinds, ["podwright-VERSION.spdx.json", "podwright-VERSION.tgz", "podwright_VERSION_ARCH.deb"]);
  assert.equal(await readFile(join(clone, "out/SHA256SUMS"), "utf8"), first);
  assert.deepEqual((await readdir(join(clone, "out"))).toSorted(), ["SHA256SUMS", ...names].toSorted());
  const { stdout: commit } = await run("git", ["rev-parse", "HEAD"], { cwd: clone });
  assert.ok((await readFile(join(clone, "out", names[0] ?? ""), "utf8")).includes(commit.trim()));
  // What lies there of an earlier release neither counts as a change nor gets into the sums.
  await writeFile(join(clone, "out/podwright-0.0.1.tgz"), "");
  assert.equal(await release("out"), first);
});

test("an interrupted release leaves what was there, and nothing else", async () => {
  const out = join(clone, "out");
  const earlier = await readdir(out);
  const releasing = spawn(process.execPath, ["scripts/release.ts", "--out", out], { cwd: clone, stdio: "ignore" });
  const ended = once(releasing, "exit");
  await until("the packing", async () => (await readdir(out)).length > earlier.length);
  releasing.kill("SIGTERM");
  assert.deepEqual(await ended, [null, "SIGTERM"]);
  assert.deepEqual(await readdir(out), earlier);
});

test("uncommitted changes are not released", async () => {
  await writeFile(join(clone, "README.md"), "changed");
  await assert.rejects(release("out"), /a release is made of a commit; not committed:\n.*README\.md/u);
});
