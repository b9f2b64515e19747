import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";
import { normalize } from "node:path/posix";

/**
 * Directories that a volume must have because a container mounts another volume there: in a read-only one the runtime
 * cannot create them. Paths relative to the volume. Pure.
 */
export function nestedMountPoints(pod: Pod, volume: string): string[] {
  const nested = new Set<string>();
  for (const { volumeMounts = [] } of allContainers(pod.spec)) {
    const paths = volumeMounts.map(({ mountPath }) => cleanPath(mountPath));
    const own = volumeMounts.filter(({ name }) => name === volume).map(({ mountPath }) => `${cleanPath(mountPath)}/`);
    for (const top of own) {
      const below = paths.filter((path) => path.startsWith(top)).toSorted();
      // Paths below another mount belong to that volume.
      const first = below.filter((path) => !below.some((other) => path.startsWith(`${other}/`)));
      for (const path of first) nested.add(path.slice(top.length));
    }
  }
  return [...nested];
}

/** Absolute, without `.`, `..`, doubled or trailing slashes. */
function cleanPath(path: string): string {
  return normalize(`/${path}`).replace(/\/$/, "");
}
