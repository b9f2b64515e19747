/**
 * Builds a release of the checked-out commit.
 *
 *   release.ts --out DIRECTORY    tarball for npm, Debian package, SPDX bill of materials, SHA256SUMS
 *   release.ts --change-log       a section of CHANGELOG.md for the version of package.json, from the commits since the last tag
 *
 * Only package.json has the version: change it, run --change-log, edit its result, commit, tag, run --out.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { version } from "../src/base/version.ts";
import type { BundledPackage } from "./bundled-packages.ts";
import { withSection } from "./change-log.ts";
import { packageListName } from "./launch.ts";
import { type LockFile, sbomOf } from "./sbom.ts";

const root = dirname(import.meta.dirname);

async function output(program: string, ...words: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, words, { cwd: root, maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(root, path), "utf8")) as T;
}

async function makeFiles(out: string): Promise<void> {
  const changed = await output("git", "status", "--porcelain");
  if (changed !== "") throw new Error(`a release is made of a commit; not committed:\n${changed}`);
  await mkdir(out, { recursive: true });
  await output("npm", "pack", "--silent", "--pack-destination", out);
  await output(process.execPath, "scripts/deb.ts", "--out", out);
  const bill = sbomOf({
    version,
    commit: await output("git", "rev-parse", "HEAD"),
    epoch: Number(await output("git", "log", "-1", "--format=%ct")),
    packages: await readJson<readonly BundledPackage[]>(`dist/${packageListName}`),
    lock: await readJson<LockFile>("package-lock.json"),
  });
  await writeFile(join(out, `podwright-${version}.spdx.json`), `${JSON.stringify(bill, undefined, 2)}\n`);
  const names = (await readdir(out)).filter((name) => /^podwright.*\.(?:tgz|deb|json)$/u.test(name)).toSorted();
  const sums = await Promise.all(
    names.map(async (name) => {
      const sum = createHash("sha256").update(await readFile(join(out, name)));
      return `${sum.digest("hex")}  ${name}\n`;
    }),
  );
  await writeFile(join(out, "SHA256SUMS"), sums.join(""));
  process.stdout.write(sums.join(""));
}

async function writeChangeLog(): Promise<void> {
  const path = join(root, "CHANGELOG.md");
  const tag = await output("git", "describe", "--tags", "--abbrev=0", "--match=v*").catch(() => "");
  if (tag === "") throw new Error("there is no tag vVERSION of an earlier release to count from");
  const subjects = (await output("git", "log", "--no-merges", "--format=%s", `${tag}..HEAD`)).split("\n");
  const date = (await output("git", "log", "-1", "--format=%cs")) || "";
  await writeFile(path, withSection(await readFile(path, "utf8"), version, date, subjects));
}

const { values } = parseArgs({ options: { out: { type: "string" }, "change-log": { type: "boolean" } } });
try {
  if (values["change-log"] === true) await writeChangeLog();
  else if (values.out !== undefined) await makeFiles(resolve(values.out));
  else throw new Error("usage: release.ts --out DIRECTORY | --change-log");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
