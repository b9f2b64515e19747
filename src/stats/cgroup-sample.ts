import type { Pressure } from "../base/kernel-text.ts";

/** CPU time since the cgroup was created, in nanoseconds. */
export interface CpuSample {
  readonly usageNanoseconds: number;
  /** Undefined if not requested. */
  readonly userNanoseconds?: number | undefined;
  readonly systemNanoseconds?: number | undefined;
  readonly throttling?: Throttling | undefined;
  readonly pressure?: Pressure | undefined;
}

export interface Throttling {
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNanoseconds: number;
  readonly burstPeriods: number;
  readonly burstNanoseconds: number;
}

/** Bytes unless stated otherwise. Including child cgroups, but for page faults on v1. */
export interface MemorySample {
  readonly usage: number;
  /** Usage without inactive file pages. */
  readonly workingSet: number;
  readonly rss: number;
  readonly cache: number;
  readonly mappedFile: number;
  readonly activeFile: number;
  readonly inactiveFile: number;
  readonly swap: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Undefined: no limit. */
  readonly limit?: number | undefined;
  /** For swap alone; undefined: no limit. */
  readonly swapLimit?: number | undefined;
  readonly pressure?: Pressure | undefined;
  readonly details?: MemoryDetails | undefined;
}

export interface MemoryDetails {
  readonly kernel: number;
  /** 0: not counted by the kernel. */
  readonly peak: number;
  /** Number of times the limit was hit; always 0 on v2. */
  readonly limitHits: number;
  /** OOM kills; undefined: not counted by the kernel. */
  readonly oomKills: number | undefined;
  readonly reservation: number;
  /** As in the kernel: memory and swap together on v1, swap alone on v2. Undefined: no limit. */
  readonly swapLimit: number | undefined;
}

/** I/O of a block device; values that the kernel does not count are undefined. */
export interface DeviceSample {
  readonly major: number;
  readonly minor: number;
  readonly readBytes?: number | undefined;
  readonly writtenBytes?: number | undefined;
  readonly reads?: number | undefined;
  readonly writes?: number | undefined;
  /** For devices shared by cost (io.cost.qos). */
  readonly cost?: IoCost | undefined;
}

/** Microseconds of device time, according to the kernel's cost model. */
export interface IoCost {
  readonly usage?: number | undefined;
  /** Time that requests waited for their share. */
  readonly wait?: number | undefined;
  readonly indebt?: number | undefined;
  readonly indelay?: number | undefined;
}

export interface IoSample {
  readonly pressure?: Pressure | undefined;
  readonly devices: readonly DeviceSample[];
}

export interface CpuLimits {
  readonly shares: number | undefined;
  /** Microseconds; undefined: no quota. */
  readonly quota: number | undefined;
  readonly period: number | undefined;
}

/** A cgroup at one moment. */
export interface CgroupSample {
  /** Wall clock ms. */
  readonly timeMs: number;
  readonly cpu?: CpuSample | undefined;
  /** Recent CPU usage in billionths of a processor; undefined: not known yet. */
  readonly nanoCores?: number | undefined;
  readonly memory?: MemorySample | undefined;
  readonly io?: IoSample | undefined;
  readonly tasks?: { readonly current: number; readonly limit: number | undefined } | undefined;
  readonly cpuLimits?: CpuLimits | undefined;
  /**
   * The cgroup's own processes, without child cgroups; of a container without any, those in child cgroups. Empty if not
   * requested.
   */
  readonly pids: readonly number[];
}

/** A v1 limit above this means none: the kernel rounds its maximum down to whole pages. */
const mostBytes = 2 ** 62;

/** A limit in bytes; undefined for none, in the notation of either version. */
export function byteLimit(value: number | undefined): number | undefined {
  return value === undefined || value < 0 || value > mostBytes ? undefined : value;
}

/** As cAdvisor defines it. */
export function workingSet(usage: number, inactiveFile: number): number {
  return Math.max(0, usage - inactiveFile);
}
