import { ExitCode, PodwrightError } from "../../base/errors.ts";
import type { Cgroups } from "../../ports/cgroups.ts";
import type { Clock } from "../../ports/clock.ts";
import { CgroupsV1, type Hierarchy } from "./cgroups-v1.ts";
import { CgroupsV2 } from "./cgroups-v2.ts";
import { readMountInfo, type MountInfo } from "../files/mountinfo.ts";
import { systemProcesses } from "../processes/processes.ts";
import { SystemdSlices } from "./systemd-slices.ts";

const cgroupRoot = "/sys/fs/cgroup";

/**
 * The machine's cgroups: v2 when its tree is mounted at /sys/fs/cgroup itself, v1 (also of a hybrid system) when
 * hierarchies are mounted below it. Slices are systemd's. Rejects when there are none.
 */
export async function openCgroups(clock: Clock): Promise<Cgroups> {
  return new SystemdSlices(cgroupsOf(clock, readMountInfo()), systemProcesses);
}

/** {@link openCgroups} for a given mount table. */
export function cgroupsOf(clock: Clock, mounts: readonly MountInfo[]): Cgroups {
  // The last mount at a place hides earlier ones.
  const atRoot = mounts.findLast(({ target }) => target === cgroupRoot);
  if (atRoot?.fileSystem === "cgroup2") return new CgroupsV2(clock, cgroupRoot);

  const below = mounts.filter(({ target }) => target.startsWith(`${cgroupRoot}/`));
  const hierarchies = new Map<string, Hierarchy>();
  for (const { device, fileSystem, target, superOptions } of below) {
    // One hierarchy may be mounted at several places, e.g. under a second name.
    if (fileSystem !== "cgroup" || hierarchies.has(device)) continue;
    hierarchies.set(device, { directory: target, controllers: superOptions });
  }
  if (hierarchies.size === 0) {
    throw new PodwrightError(ExitCode.environment, `no cgroups are mounted at ${cgroupRoot}`, {
      remedy: `mount them: mount -t cgroup2 none ${cgroupRoot}`,
    });
  }
  const unified = below.find(({ fileSystem }) => fileSystem === "cgroup2")?.target;
  return new CgroupsV1(clock, [...hierarchies.values()], unified);
}
