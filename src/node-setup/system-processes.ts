import { errorMessage } from "../base/errors.ts";
import { parseOwnCgroup } from "../base/kernel-text.ts";
import type { Cgroups } from "../ports/cgroups.ts";
import { FileError, type Files } from "../ports/files.ts";
import type { Logger } from "../ports/log.ts";

export interface SystemProcessesDependencies {
  readonly cgroups: Pick<Cgroups, "version" | "ownPids" | "move">;
  readonly files: Pick<Files, "read" | "readLink">;
  readonly log: Logger;
}

const init = 1;
/** New processes may start during a pass. */
const passes = 11;
const maxBytes = 64 * 1024;

/**
 * Moves the root cgroup's processes except process 1 and kernel threads to the cgroup (systemCgroups; upstream:
 * ensureSystemCgroups). Skips processes that cannot be moved.
 */
export async function moveSystemProcesses(deps: SystemProcessesDependencies, cgroup: string): Promise<void> {
  const { cgroups, log } = deps;
  let failure: { readonly pid: number; readonly error: string } | undefined;
  for (let pass = 0; pass < passes; pass++) {
    try {
      const pids = await movable(deps, await cgroups.ownPids("/"));
      if (pids.length === 0) return;
      for (const [pid, error] of await cgroups.move(pids, cgroup)) failure = { pid, error: errorMessage(error) };
    } catch (error) {
      log.info("cannot move the processes of the root cgroup into systemCgroups", {
        cgroup,
        error: errorMessage(error),
      });
      return;
    }
  }
  if (failure !== undefined) log.info("cannot move a process into systemCgroups", { cgroup, ...failure });
}

async function movable({ files }: SystemProcessesDependencies, pids: readonly number[]): Promise<number[]> {
  const isUsers = await Promise.all(pids.map(async (pid) => pid !== init && !(await isKernelThread(files, pid))));
  return pids.filter((_, index) => isUsers[index]);
}

/** Kernel threads have no executable; neither do ended processes. */
async function isKernelThread(files: Pick<Files, "readLink">, pid: number): Promise<boolean> {
  try {
    await files.readLink(`/proc/${pid}/exe`);
    return false;
  } catch (error) {
    return error instanceof FileError && error.code === "ENOENT";
  }
}

/** Moves the kubelet to the cgroup (kubeletCgroups), unless it is already there. */
export async function moveKubelet(
  { cgroups, files, log }: SystemProcessesDependencies,
  pid: number,
  cgroup: string,
): Promise<void> {
  try {
    const text = new TextDecoder().decode(await files.read(`/proc/${pid}/cgroup`, maxBytes));
    const hierarchies = cgroups.version === 2 ? [undefined] : ["cpu", "memory"];
    if (hierarchies.every((controller) => parseOwnCgroup(text, controller) === cgroup)) return;
    for (const error of (await cgroups.move([pid], cgroup)).values()) throw error;
    log.info("moved the kubelet into kubeletCgroups", { cgroup });
  } catch (error) {
    log.info("cannot move the kubelet into kubeletCgroups", { cgroup, error: errorMessage(error) });
  }
}
