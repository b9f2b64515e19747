/**
 * What a pod or QoS cgroup may hold. Names are cgroup v1's and Kubernetes'; the port translates for v2
 * (KEP-2254: weight = 1 + ((shares − 2) × 9999) / 262142).
 */
export interface CgroupResources {
  /** Relative CPU weight, 2..262144. */
  readonly cpuShares?: number;
  /** Microseconds of CPU a period; −1 for no limit. */
  readonly cpuQuotaMicroseconds?: number;
  readonly cpuPeriodMicroseconds?: number;
  /** Bytes; −1 for no limit. */
  readonly memoryLimitBytes?: number;
  /** Bytes that the kernel never reclaims (`memory.min`); of no effect on v1. */
  readonly memoryMinBytes?: number;
  /** Bytes that the kernel reclaims only when nothing else is left (`memory.low`); of no effect on v1. */
  readonly memoryLowBytes?: number;
  /** Processes and threads; −1 for no limit. */
  readonly pidsLimit?: number;
  /**
   * Bytes of huge pages by page size in the kernel's words (`2MB`); sizes that the kernel does not count are ignored.
   */
  readonly hugePageLimitBytes?: Readonly<Record<string, number>>;
}

/** The present values of a cgroup. */
export interface CgroupState {
  /** −1 for what is not limited. Shares that were written as a v2 weight come back as near as that allows. */
  readonly resources: Required<
    Pick<CgroupResources, "cpuShares" | "cpuQuotaMicroseconds" | "cpuPeriodMicroseconds" | "memoryLimitBytes">
  >;
  /** Memory that counts against its limit, caches included. */
  readonly memoryUsageBytes: number;
}

export type EmptyRemoval = "removed" | "absent" | "refused";

/**
 * Cgroups by their logical path, e.g. `/kubepods/burstable/pod1234` (cgroupfs names); on v1 one path stands for the
 * same path in every controller.
 */
export interface Cgroups {
  readonly version: 1 | 2;
  exists(path: string): Promise<boolean>;
  /** What the cgroup lacks of what pods are limited by: directories on v1, controllers on v2. Rejects on v2 without the cgroup. */
  missing(path: string): Promise<string[]>;
  /** Creates the cgroup and its parents, then applies the resources; existing ones are updated. */
  apply(path: string, resources: CgroupResources): Promise<void>;
  /** What the cgroup is limited to, and what it uses; rejects when it is not there. */
  read(path: string): Promise<CgroupState>;
  /** Names of the direct children. */
  children(path: string): Promise<string[]>;
  /** Processes in the cgroup and below it. */
  pids(path: string): Promise<number[]>;
  /** Processes in the cgroup itself: on v1 in that of the cpu controller. */
  ownPids(path: string): Promise<number[]>;
  /**
   * Moves processes into the cgroup, which is created when it is missing; rejects when it can't be. Resolves to the errors of those
   * that stay, by their pids.
   */
  move(pids: readonly number[], path: string): Promise<ReadonlyMap<number, unknown>>;
  /** Removes the cgroup when nothing is in it. `refused`: something may be there still. */
  removeEmpty(path: string): Promise<EmptyRemoval>;
  /** Removes the cgroup and the ones below it; rejects while a process is in one. Nothing there is no error. */
  remove(path: string): Promise<void>;
}
