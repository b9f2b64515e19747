import type { CgroupFile, CgroupTexts } from "./depth.ts";
import { byteLimit, type CgroupSample, type DeviceSample, workingSet } from "./cgroup-sample.ts";
import { parseKeyed, parseNumber, parsePids, tickNanoseconds } from "../base/kernel-text.ts";

/** Files of a v1 cgroup. There are none for pressure: the kernel reports it on v2 only. */
export const filesV1: readonly CgroupFile[] = [
  { controller: "cpuacct", name: "cpuacct.usage", depth: "resources" },
  { controller: "memory", name: "memory.usage_in_bytes", depth: "resources" },
  { controller: "memory", name: "memory.stat", depth: "resources" },
  { controller: "memory", name: "memory.limit_in_bytes", depth: "resources" },
  { controller: "memory", name: "memory.memsw.limit_in_bytes", depth: "resources" },
  { controller: "memory", name: "cgroup.procs", depth: "summary" },
  { controller: "cpuacct", name: "cpuacct.stat", depth: "everything" },
  { controller: "cpu", name: "cpu.stat", depth: "everything" },
  { controller: "cpu", name: "cpu.shares", depth: "everything" },
  { controller: "cpu", name: "cpu.cfs_quota_us", depth: "everything" },
  { controller: "cpu", name: "cpu.cfs_period_us", depth: "everything" },
  { controller: "memory", name: "memory.max_usage_in_bytes", depth: "everything" },
  { controller: "memory", name: "memory.failcnt", depth: "everything" },
  { controller: "memory", name: "memory.kmem.usage_in_bytes", depth: "everything" },
  { controller: "memory", name: "memory.soft_limit_in_bytes", depth: "everything" },
  { controller: "memory", name: "memory.oom_control", depth: "everything" },
  { controller: "pids", name: "pids.current", depth: "everything" },
  { controller: "pids", name: "pids.max", depth: "everything" },
  { controller: "blkio", name: "blkio.throttle.io_service_bytes_recursive", depth: "everything" },
  { controller: "blkio", name: "blkio.throttle.io_serviced_recursive", depth: "everything" },
];

/** A v1 cgroup's sample from its files in all hierarchies. */
export function sampleV1(texts: CgroupTexts, timeMs: number): CgroupSample {
  const current = parseNumber(texts.get("pids.current"));
  return {
    timeMs,
    cpu: cpu(texts),
    memory: memory(texts),
    io: {
      devices: parseBlkio(
        texts.get("blkio.throttle.io_service_bytes_recursive"),
        texts.get("blkio.throttle.io_serviced_recursive"),
      ),
    },
    ...(current !== undefined && { tasks: { current, limit: parseNumber(texts.get("pids.max")) } }),
    cpuLimits: cpuLimits(texts),
    pids: parsePids(texts.get("cgroup.procs")),
  };
}

function cpu(texts: CgroupTexts): CgroupSample["cpu"] {
  const usage = parseNumber(texts.get("cpuacct.usage"));
  if (usage === undefined) return undefined;
  const ticks = parseKeyed(texts.get("cpuacct.stat"));
  const stat = parseKeyed(texts.get("cpu.stat"));
  const count = (name: string): number => stat.get(name) ?? 0;
  const nanoseconds = (name: string): number | undefined => {
    const value = ticks.get(name);
    return value === undefined ? undefined : value * tickNanoseconds;
  };
  return {
    usageNanoseconds: usage,
    userNanoseconds: nanoseconds("user"),
    systemNanoseconds: nanoseconds("system"),
    ...(stat.size > 0 && {
      throttling: {
        periods: count("nr_periods"),
        throttledPeriods: count("nr_throttled"),
        throttledNanoseconds: count("throttled_time"),
        burstPeriods: count("nr_bursts"),
        burstNanoseconds: count("burst_time"),
      },
    }),
  };
}

function memory(texts: CgroupTexts): CgroupSample["memory"] {
  const usage = parseNumber(texts.get("memory.usage_in_bytes"));
  if (usage === undefined) return undefined;
  const stat = parseKeyed(texts.get("memory.stat"));
  const total = (name: string): number => stat.get(`total_${name}`) ?? stat.get(name) ?? 0;
  const inactiveFile = total("inactive_file");
  const limit = byteLimit(parseNumber(texts.get("memory.limit_in_bytes")));
  const withSwap = byteLimit(parseNumber(texts.get("memory.memsw.limit_in_bytes")));
  return {
    usage,
    workingSet: workingSet(usage, inactiveFile),
    rss: total("rss"),
    cache: total("cache"),
    mappedFile: total("mapped_file"),
    activeFile: total("active_file"),
    inactiveFile,
    swap: total("swap"),
    // cAdvisor takes these without those of child cgroups: a pod's are in its containers.
    pageFaults: stat.get("pgfault") ?? 0,
    majorPageFaults: stat.get("pgmajfault") ?? 0,
    limit,
    // The kernel limits memory and swap together: the difference to the memory limit is for swap.
    swapLimit: withSwap === undefined || limit === undefined ? undefined : Math.max(0, withSwap - limit),
    details: {
      kernel: parseNumber(texts.get("memory.kmem.usage_in_bytes")) ?? 0,
      peak: parseNumber(texts.get("memory.max_usage_in_bytes")) ?? 0,
      limitHits: parseNumber(texts.get("memory.failcnt")) ?? 0,
      oomKills: parseKeyed(texts.get("memory.oom_control")).get("oom_kill"),
      reservation: byteLimit(parseNumber(texts.get("memory.soft_limit_in_bytes"))) ?? 0,
      swapLimit: withSwap,
    },
  };
}

function cpuLimits(texts: CgroupTexts): CgroupSample["cpuLimits"] {
  const shares = parseNumber(texts.get("cpu.shares"));
  const quota = parseNumber(texts.get("cpu.cfs_quota_us"));
  const period = parseNumber(texts.get("cpu.cfs_period_us"));
  if (shares === undefined) return undefined;
  return { shares, quota: quota === undefined || quota < 0 ? undefined : quota, period };
}

/** Parses lines such as `8:0 Read 123` of both files. */
export function parseBlkio(bytes: string | undefined, operations: string | undefined): DeviceSample[] {
  const devices = new Map<string, { -readonly [K in keyof DeviceSample]: DeviceSample[K] }>();
  const read = (
    text: string | undefined,
    names: Readonly<Record<string, "readBytes" | "writtenBytes" | "reads" | "writes">>,
  ): void => {
    for (const [, major, minor, operation = "", value] of (text ?? "").matchAll(/^(\d+):(\d+) (\w+) (\d+)$/gmu)) {
      const name = names[operation];
      if (name === undefined) continue;
      const key = `${major}:${minor}`;
      const device = devices.get(key) ?? { major: Number(major), minor: Number(minor) };
      device[name] = Number(value);
      devices.set(key, device);
    }
  };
  read(bytes, { Read: "readBytes", Write: "writtenBytes" });
  read(operations, { Read: "reads", Write: "writes" });
  return [...devices.values()];
}
