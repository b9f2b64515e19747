import { join } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import type { Files } from "../ports/files.ts";
import type { ApplyRequest } from "../server/local-api.ts";
import { maxManifestBytes } from "../sources/decode.ts";
import { manifestNames } from "../sources/load.ts";
import { objectKey } from "../sources/run-objects.ts";
import type { MachineContext } from "./machine-context.ts";
import { loadInput } from "./manifest-input.ts";

/**
 * Copies files into a directory, by the copies' names, or changes nothing. @returns puts back what was there before; never rejects
 */
export async function copyManifests(
  files: Files,
  manifests: ReadonlyMap<string, string>,
  directory: string,
): Promise<() => Promise<void>> {
  const undo: (() => Promise<void>)[] = [];
  const restore = async (): Promise<void> => {
    for (const step of undo.toReversed()) await step().catch(() => {});
  };
  try {
    for (const [name, path] of manifests) {
      const to = join(directory, name);
      if (to === path) continue;
      const text = await files.read(path, maxManifestBytes);
      const before = (await files.stat(to)) === undefined ? undefined : await files.read(to, maxManifestBytes);
      // They may contain Secrets.
      undo.push(() => (before === undefined ? files.remove(to) : files.writeAtomic(to, before, 0o600)));
      await files.writeAtomic(to, text, 0o600);
    }
  } catch (error) {
    await restore();
    throw error;
  }
  return restore;
}

/**
 * The pods, as `namespace/name`, that are enabled now and would no longer be: newer versions of their manifests omit them.
 * @param request the objects of the new files
 * @throws PodwrightError (bad input) for a file with the name of an enabled one, but none of its objects: it is another manifest
 */
export async function replacedPods(
  context: Pick<MachineContext, "clock" | "files" | "network">,
  { manifests, request }: { readonly manifests: ReadonlyMap<string, string>; readonly request: ApplyRequest },
  directory: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const present = await manifestNames(context.files, directory);
  const load = async (paths: readonly string[]): ReturnType<typeof loadInput> => loadInput(context, paths, signal);
  const keysOf = ({ pods }: ApplyRequest): string[] => pods.map(({ metadata }) => objectKey(metadata));
  const omitted = new Set<string>();
  for (const name of present) {
    const path = manifests.get(name);
    const enabled = join(directory, name);
    if (path === undefined || path === enabled) continue;
    const before = await load([enabled]);
    const after = await load([path]);
    const objects = [...before.origins.keys()];
    if (objects.length > 0 && !objects.some((object) => after.origins.has(object))) {
      throw new PodwrightError(ExitCode.badInput, `another ${name} is enabled, with ${objects.join(", ")}`, {
        remedy: `rename this file, or disable that one first: podwright disable ${shellWord(name)}`,
      });
    }
    for (const key of keysOf(before.request)) omitted.add(key);
  }
  const kept = await load(present.filter((name) => !manifests.has(name)).map((name) => join(directory, name)));
  return [...omitted.difference(new Set([...keysOf(request), ...keysOf(kept.request)]))];
}
