/**
 * Builds a release of the checked-out commit.
 *
 *   release.ts --out DIRECTORY    tarball for npm, Debian package, SPDX bill of materials, SHA256SUMS
 *   release.ts --change-log       a section of CHANGELOG.md for the version of package.json, from the commits since the last tag
 *
 * Only package.json has the version: change it, run --change-log, edit its result, commit, tag, run --out.
 */
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { version } from "../src/base/version.ts";
import type { BundledPackage } from "./bundled-packages.ts";
import { withSection } from "./change-log.ts";
import { checksums } from "./checksums.ts";
import { packageListName } from "./launch.ts";
import { orderly, output, root, sourceEpoch } from "./repository.ts";
import { type LockFile, sbomOf } from "./sbom.ts";

const sumsName = "SHA256SUMS";

async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(root, path), "utf8")) as T;
}

/** @throws Error when the working tree is not the commit; what an earlier release left in `out` does not count */
async function requireCommitted(out: string): Promise<void> {
  const inside = relative(root, out);
  const others = inside === "" || inside.startsWith("..") ? [] : [`:(exclude)${inside}`];
  const changed = await output("git", ["status", "--porcelain", "--", ".", ...others]);
  if (changed !== "") throw new Error(`a release is made of a commit; not committed:\n${changed}`);
}

/** In a directory beside the finished ones, so that an interrupted release leaves no file that looks like one. */
async function makeFiles(out: string): Promise<void> {
  await requireCommitted(out);
  // The bundle names its commit; an existing bundle may be from another commit with equal sources.
  await output(process.execPath, ["scripts/build.ts"]);
  await mkdir(out, { recursive: true });
  const unfinished = await mkdtemp(join(out, ".unfinished-"));
  try {
    const contents = await packed(unfinished);
    const sums = checksums(contents);
    await writeFile(join(unfinished, sumsName), sums);
    await rm(join(out, sumsName), { force: true });
    // The sums come last: they imply the rest.
    for (const name of [...contents.keys(), sumsName]) await rename(join(unfinished, name), join(out, name));
    process.stdout.write(sums);
  } finally {
    await rm(unfinished, { recursive: true });
  }
}

/** Makes the files of the release. @returns their contents, by name */
async function packed(directory: string): Promise<Map<string, Uint8Array>> {
  const tarball = await output("npm", ["pack", "--silent", "--pack-destination", directory]);
  const epoch = await sourceEpoch();
  const words = ["scripts/deb.ts", "--out", directory];
  const debian = await output(process.execPath, words, { SOURCE_DATE_EPOCH: String(epoch) });
  const bill = sbomOf({
    version,
    commit: await output("git", ["rev-parse", "HEAD"]),
    epoch,
    packages: await readJson<readonly BundledPackage[]>(`dist/${packageListName}`),
    lock: await readJson<LockFile>("package-lock.json"),
  });
  const billName = `podwright-${version}.spdx.json`;
  await writeFile(join(directory, billName), `${JSON.stringify(bill, undefined, 2)}\n`);
  const contents = new Map<string, Uint8Array>();
  for (const name of [basename(tarball), basename(debian), billName]) {
    contents.set(name, await readFile(join(directory, name)));
  }
  return contents;
}

async function writeChangeLog(): Promise<void> {
  const path = join(root, "CHANGELOG.md");
  const tag = await output("git", ["describe", "--tags", "--abbrev=0", "--match=v*"]).catch(() => "");
  if (tag === "") throw new Error("there is no tag vVERSION of an earlier release to count from");
  const subjects = (await output("git", ["log", "--no-merges", "--format=%s", `${tag}..HEAD`])).split("\n");
  const date = await output("git", ["log", "-1", "--format=%cs"]);
  await writeFile(path, withSection(await readFile(path, "utf8"), version, date, subjects));
}

await orderly(async () => {
  const { values } = parseArgs({ options: { out: { type: "string" }, "change-log": { type: "boolean" } } });
  if (values["change-log"] === true) await writeChangeLog();
  else if (values.out !== undefined) await makeFiles(resolve(values.out));
  else throw new Error("usage: release.ts --out DIRECTORY | --change-log");
});
