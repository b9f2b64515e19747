import { basename, dirname } from "node:path/posix";
import { ExitCode, PodwrightError } from "../base/errors.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import { rootsOfNodes } from "./node-roots.ts";
import { endOfEngine, shownPaths } from "./place-occupant.ts";
import { hasStateFormat } from "./state-format.ts";

interface ShownEngineDependencies {
  readonly files: Files;
  readonly mounts: Pick<Mounts, "list">;
}

/**
 * Refuses a directory of a kubelet that shows the one of an engine, which need not run: its pods may. What an administrator
 * has mounted there is the kubelet's.
 * @param root of the kubelet
 * @param name `pods` or `plugins`
 * @throws PodwrightError naming the engine's state directory
 */
export async function requireNoEngine(deps: ShownEngineDependencies, root: string, name: string): Promise<void> {
  const path = `${root}/${name}`;
  const state = await stateShownAt(deps, path, name);
  if (state === undefined) return;
  const message = `${path} shows ${state}/kubelet/${name}: a kubelet would remove the volumes of an engine's pods`;
  const remedy = `${endOfEngine(state)}; or choose another --root-dir`;
  throw new PodwrightError(ExitCode.environment, message, { remedy });
}

/** The state directory of the engine whose directory is at a path; undefined: none is. */
async function stateShownAt(
  { files, mounts }: ShownEngineDependencies,
  path: string,
  name: string,
): Promise<string | undefined> {
  const there = await files.stat(path);
  if (there === undefined) return undefined;
  const real = await files.realPath(path).catch(() => path);
  const all = await mounts.list();
  const mount = all.findLast(({ target }) => target === real);
  const found = mount === undefined ? [] : shownPaths(mount, all);
  // A mount may hide where the directory is found otherwise.
  const registered = (await rootsOfNodes(files)).map((root) => `${root}/${name}`);
  for (const candidate of new Set([...found, ...registered])) {
    const rootDirectory = dirname(candidate);
    if (candidate === real || basename(candidate) !== name || basename(rootDirectory) !== "kubelet") continue;
    const own = await files.stat(candidate).catch(() => undefined);
    if (own?.inode !== there.inode || own.device !== there.device) continue;
    const state = dirname(rootDirectory);
    if (await hasStateFormat(files, state)) return state;
  }
  return undefined;
}
