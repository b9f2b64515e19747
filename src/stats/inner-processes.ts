import { parsePids } from "../base/kernel-text.ts";
import type { StatsFiles } from "../ports/stats-files.ts";
import { cgroupDirectory } from "./cgroup-files.ts";

/** A container may make cgroups of its own: more than these tell nothing new. */
const most = { levels: 4, cgroups: 256 } as const;

/**
 * Processes in the cgroups below a container's, upper levels first. On v2 a cgroup whose children have controllers has
 * none itself: crun puts containers into one below their scope, and systemd or Docker in a container move there, too.
 */
export async function innerProcesses(
  files: Pick<StatsFiles, "cgroups" | "directories" | "readTexts">,
  cgroup: string,
): Promise<number[]> {
  const pids: number[] = [];
  let [parents, left] = [[cgroupDirectory(files.cgroups, cgroup)], most.cgroups as number];
  for (let level = 0; level < most.levels && parents.length > 0 && left > 0; level++) {
    const children: string[] = [];
    for (const parent of parents) {
      for (const name of await files.directories(parent)) children.push(`${parent}/${name}`);
      if (children.length >= left) break;
    }
    parents = children.slice(0, left);
    left -= parents.length;
    const texts = await files.readTexts(parents.map((path) => `${path}/cgroup.procs`));
    for (const text of texts) pids.push(...parsePids(text));
  }
  return pids;
}
