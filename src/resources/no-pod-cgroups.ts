import type { PodCgroups } from "./pod-cgroups.ts";

/** For cgroupsPerQOS false: the runtime chooses containers' cgroups, and pods have no limits as a whole. */
export const noPodCgroups: Pick<PodCgroups, keyof PodCgroups> = {
  ensure: async () => {},
  settle: async () => {},
  raise: async () => {},
  resourcesOf: () => ({}),
  read: async () => ({
    resources: { cpuShares: 0, cpuQuotaMicroseconds: -1, cpuPeriodMicroseconds: 100_000, memoryLimitBytes: -1 },
    memoryUsageBytes: 0,
  }),
  readContainer: async () => undefined,
  apply: async () => {},
  destroy: async () => {},
  podUids: async () => [],
  removeTree: async () => {},
  run: async () => {},
};
