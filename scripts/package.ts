/**
 * Prepares the package's files for `npm pack` and the Debian package. Rebuilds the bundle only if the sources are
 * newer.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { version } from "../src/base/version.ts";
import { completionScripts } from "../src/cli/completion-scripts.ts";
import { type BundledPackage, licenceText } from "./bundled-packages.ts";
import { compileCacheName, fileListName, packageListName } from "./launch.ts";
import { manPage } from "./man-page.ts";

const root = dirname(import.meta.dirname);
const dist = join(root, "dist");
const share = join(root, "share");

/** The last build's files, relative to dist/; none of a build that was interrupted. */
async function builtFiles(): Promise<readonly string[]> {
  const files = (await readFile(join(dist, fileListName), "utf8").catch(() => "")).split("\n");
  return files.includes(compileCacheName) ? files : [];
}

async function buildIfStale(): Promise<void> {
  const { stdout } = await promisify(execFile)("sh", ["scripts/newer-than-bundle.sh"], { cwd: root });
  if (stdout === "" && (await builtFiles()).length > 0) return;
  await promisify(execFile)(process.execPath, ["scripts/build.ts"], { cwd: root });
}

/**
 * The previous build's files are only for a podwright that runs from this directory, and so is what Node.js has compiled
 * since.
 */
async function removeOthers(): Promise<void> {
  const built = new Set(await builtFiles());
  const left = (await readdir(dist, { recursive: true })).filter((name) => !built.has(name));
  for (const name of left) await rm(join(dist, name), { recursive: true, force: true });
}

await buildIfStale();
await removeOthers();
await rm(share, { recursive: true, force: true });
for (const directory of ["man", "completions"]) await mkdir(join(share, directory), { recursive: true });
const packages = JSON.parse(await readFile(join(dist, packageListName), "utf8")) as readonly BundledPackage[];
await writeFile(join(share, "licenses.txt"), licenceText(packages));
await writeFile(join(share, "man/podwright.1"), manPage(version));
await writeFile(join(share, "completions/podwright.bash"), completionScripts.bash);
await writeFile(join(share, "completions/_podwright"), completionScripts.zsh);
await writeFile(join(share, "completions/podwright.fish"), completionScripts.fish);
