import type { Pressure } from "../base/kernel-text.ts";

/** Processor time since the cgroup was made, in nanoseconds. */
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

/** Bytes, if not said otherwise. Those of v1 with the cgroups below. */
export interface MemorySample {
  readonly usage: number;
  /** Usage without file pages that were not used lately. */
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
  /** Of swap alone; undefined: no limit. */
  readonly swapLimit?: number | undefined;
  readonly pressure?: Pressure | undefined;
  readonly details?: MemoryDetails | undefined;
}

export interface MemoryDetails {
  readonly kernel: number;
  readonly peak: number | undefined;
  /** How often the limit was hit. */
  readonly limitHits: number;
  /** OOM kills; undefined: the kernel does not count them. */
  readonly oomKills: number | undefined;
  readonly reservation: number;
  /** As the kernel has it: memory and swap together on v1, swap alone on v2. Undefined: no limit. */
  readonly swapLimit: number | undefined;
}

/** What was read from and written to a block device; what the kernel does not count is undefined. */
export interface DeviceSample {
  readonly major: number;
  readonly minor: number;
  readonly readBytes?: number | undefined;
  readonly writtenBytes?: number | undefined;
  readonly reads?: number | undefined;
  readonly writes?: number | undefined;
  /** Where the device is shared by cost (io.cost.qos). */
  readonly cost?: IoCost | undefined;
}

/** Microseconds of device time, by the kernel's model of what requests cost. */
export interface IoCost {
  readonly usage?: number | undefined;
  /** For which requests waited for their share. */
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
  /** Of one processor, in billionths, over the last seconds; undefined: not known yet. */
  readonly nanoCores?: number | undefined;
  readonly memory?: MemorySample | undefined;
  readonly io?: IoSample | undefined;
  readonly tasks?: { readonly current: number; readonly limit: number | undefined } | undefined;
  readonly cpuLimits?: CpuLimits | undefined;
  /** Of the cgroup itself, not of those below; empty if not requested. */
  readonly pids: readonly number[];
}

/** Above this a limit of v1 means none: the kernel rounds its greatest number down to whole pages. */
const mostBytes = 2 ** 62;

/** A limit in bytes; undefined for none, in the words of both versions. */
export function byteLimit(value: number | undefined): number | undefined {
  return value === undefined || value < 0 || value > mostBytes ? undefined : value;
}

/** As cAdvisor defines it. */
export function workingSet(usage: number, inactiveFile: number): number {
  return Math.max(0, usage - inactiveFile);
}
