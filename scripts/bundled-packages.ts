/** The npm packages with code in the bundle, and the notices that their licences require. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metafile } from "esbuild";

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  /** SPDX expression. */
  readonly license: string;
  /** The package's licence file, or else the notices above the bundled code. */
  readonly notice: string;
}

/**
 * @param root base of the metafile's paths
 * @throws Error for a package without a licence, or without any notice
 */
export async function bundledPackages(root: string, metafile: Metafile): Promise<BundledPackage[]> {
  const files = new Map<string, string[]>();
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const directory = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/u.exec(path)?.[0];
      if (directory === undefined || bytesInOutput === 0) continue;
      files.set(directory, [...(files.get(directory) ?? []), path]);
    }
  }
  const packages = [...files].map(([directory, paths]) => describePackage(root, directory, [...new Set(paths)]));
  return (await Promise.all(packages)).toSorted((a, b) => a.name.localeCompare(b.name, "en"));
}

async function describePackage(root: string, directory: string, paths: readonly string[]): Promise<BundledPackage> {
  const manifest: unknown = JSON.parse(await readFile(join(root, directory, "package.json"), "utf8"));
  const { name, version, license } = manifest as Partial<BundledPackage>;
  if (name === undefined || version === undefined || license === undefined) {
    throw new Error(`${directory}/package.json does not say name, version and license`);
  }
  const notice = (await licenceFile(join(root, directory))) ?? (await noticesAbove(root, paths));
  if (notice === "") throw new Error(`${directory} has neither a licence file nor a copyright notice in its code`);
  return { name, version, license, notice };
}

async function licenceFile(directory: string): Promise<string | undefined> {
  const name = (await readdir(directory)).find((candidate) => /^licen[cs]e(?:\.md|\.txt)?$/iu.test(candidate));
  return name === undefined ? undefined : (await readFile(join(directory, name), "utf8")).trim();
}

/** Copyright comments at the beginning of files, without duplicates. */
async function noticesAbove(root: string, paths: readonly string[]): Promise<string> {
  const texts = await Promise.all(paths.map((path) => readFile(join(root, path), "utf8")));
  const notices = texts.flatMap((text) => {
    const comments = text.match(/^(?:\/\/.*\n)+|\/\*[^]*?\*\//gmu) ?? [];
    return comments.filter((comment) => /copyright/iu.test(comment)).map(plainComment);
  });
  return [...new Set(notices)].toSorted().join("\n\n");
}

function plainComment(comment: string): string {
  const lines = comment.replaceAll(/^\/\*+|\*+\/$/gu, "").split("\n");
  return lines
    .map((line) => line.replace(/^\s*(?:\/\/|\*)? ?/u, "").trimEnd())
    .join("\n")
    .trim();
}

/** The text of share/licenses.txt: each package with its version, licence and notice. */
export function licenceText(packages: readonly BundledPackage[]): string {
  const head =
    "podwright's program contains code of these packages. The text of the Apache License 2.0 is in LICENSE.\n";
  const sections = packages.map(({ name, version, license, notice }) => {
    return `${"-".repeat(78)}\n${name} ${version} (${license})\n\n${notice}\n`;
  });
  return [head, ...sections].join("\n");
}
