import type { Cgroups } from "../ports/cgroups.ts";
import { defaultBounds } from "./buckets.ts";
import type { Registry } from "./registry.ts";

/** Wraps cgroups and records the duration of changes. */
export function measuredCgroups(registry: Registry, clock: { monotonic(): number }, cgroups: Cgroups): Cgroups {
  const seconds = registry.histogram(
    "kubelet_cgroup_manager_duration_seconds",
    "Duration of cgroup changes",
    ["operation_type"],
    defaultBounds,
  );
  const known = new Set<string>();
  const measure = async (operation: string, work: Promise<void>): Promise<void> => {
    const beganMs = clock.monotonic();
    try {
      await work;
    } finally {
      seconds.observe([operation], (clock.monotonic() - beganMs) / 1000);
    }
  };
  return {
    version: cgroups.version,
    exists: (path) => cgroups.exists(path),
    missing: (path) => cgroups.missing(path),
    apply: async (path, resources) => {
      await measure(known.has(path) ? "update" : "create", cgroups.apply(path, resources));
      known.add(path);
    },
    read: (path) => cgroups.read(path),
    children: (path) => cgroups.children(path),
    pids: (path) => cgroups.pids(path),
    ownPids: (path) => cgroups.ownPids(path),
    move: (pids, path) => cgroups.move(pids, path),
    removeEmpty: async (path) => {
      const beganMs = clock.monotonic();
      const outcome = await cgroups.removeEmpty(path);
      if (outcome !== "refused") known.delete(path);
      if (outcome === "removed") seconds.observe(["destroy"], (clock.monotonic() - beganMs) / 1000);
      return outcome;
    },
    remove: async (path) => {
      known.delete(path);
      await measure("destroy", cgroups.remove(path));
    },
  };
}
