import { byteLimit, type CgroupSample, type DeviceSample, workingSet } from "./cgroup-sample.ts";
import type { CgroupFile, CgroupTexts } from "./depth.ts";
import { parseKeyed, parseNumber, parsePids, parsePressure } from "../base/kernel-text.ts";

/** Files of a v2 cgroup. */
export const filesV2: readonly CgroupFile[] = [
  { name: "cpu.stat", depth: "resources" },
  { name: "memory.current", depth: "resources" },
  { name: "memory.stat", depth: "resources" },
  { name: "memory.max", depth: "resources" },
  { name: "memory.swap.current", depth: "resources" },
  { name: "memory.swap.max", depth: "resources" },
  { name: "cgroup.procs", depth: "summary" },
  { name: "cpu.pressure", depth: "summary" },
  { name: "memory.pressure", depth: "summary" },
  { name: "io.pressure", depth: "summary" },
  { name: "memory.peak", depth: "everything" },
  { name: "memory.events", depth: "everything" },
  { name: "memory.min", depth: "everything" },
  { name: "pids.current", depth: "everything" },
  { name: "pids.max", depth: "everything" },
  { name: "io.stat", depth: "everything" },
  { name: "cpu.weight", depth: "everything" },
  { name: "cpu.max", depth: "everything" },
];

/** A v2 cgroup's sample from its files; those of disabled controllers are missing. */
export function sampleV2(texts: CgroupTexts, timeMs: number, isRoot: boolean): CgroupSample {
  return {
    timeMs,
    cpu: cpu(texts),
    memory: memory(texts, isRoot),
    io: {
      pressure: parsePressure(texts.get("io.pressure")),
      devices: parseIoStat(texts.get("io.stat")),
    },
    tasks: tasks(texts),
    cpuLimits: cpuLimits(texts),
    pids: parsePids(texts.get("cgroup.procs")),
  };
}

function cpu(texts: CgroupTexts): CgroupSample["cpu"] {
  const stat = parseKeyed(texts.get("cpu.stat"));
  const usage = stat.get("usage_usec");
  if (usage === undefined) return undefined;
  const count = (name: string): number => stat.get(name) ?? 0;
  return {
    usageNanoseconds: usage * 1000,
    userNanoseconds: count("user_usec") * 1000,
    systemNanoseconds: count("system_usec") * 1000,
    throttling: {
      periods: count("nr_periods"),
      throttledPeriods: count("nr_throttled"),
      throttledNanoseconds: count("throttled_usec") * 1000,
      burstPeriods: count("nr_bursts"),
      burstNanoseconds: count("burst_usec") * 1000,
    },
    pressure: parsePressure(texts.get("cpu.pressure")),
  };
}

function memory(texts: CgroupTexts, isRoot: boolean): CgroupSample["memory"] {
  const stat = parseKeyed(texts.get("memory.stat"));
  const usage = parseNumber(texts.get("memory.current")) ?? (isRoot ? rootUsage(stat) : undefined);
  if (usage === undefined) return undefined;
  const count = (name: string): number => stat.get(name) ?? 0;
  const inactiveFile = count("inactive_file");
  const swapLimit = byteLimit(parseNumber(texts.get("memory.swap.max")));
  return {
    usage,
    workingSet: workingSet(usage, inactiveFile),
    rss: count("anon"),
    cache: count("file"),
    mappedFile: count("file_mapped"),
    activeFile: count("active_file"),
    inactiveFile,
    swap: parseNumber(texts.get("memory.swap.current")) ?? 0,
    pageFaults: count("pgfault"),
    majorPageFaults: count("pgmajfault"),
    limit: byteLimit(parseNumber(texts.get("memory.max"))),
    swapLimit,
    pressure: parsePressure(texts.get("memory.pressure")),
    details: {
      kernel: count("kernel"),
      // Since Linux 5.19, and not for the root. cAdvisor's series exist always.
      peak: parseNumber(texts.get("memory.peak")) ?? 0,
      // As cAdvisor, which does not take `max` of memory.events for it.
      limitHits: 0,
      oomKills: parseKeyed(texts.get("memory.events")).get("oom_kill"),
      reservation: parseNumber(texts.get("memory.min")) ?? 0,
      swapLimit,
    },
  };
}

/**
 * The root has no memory.current. As in runc, these two stand for it, which is what a v1 root counts: without the
 * kernel's own memory, most of which can be freed.
 */
function rootUsage(stat: ReadonlyMap<string, number>): number | undefined {
  const [anonymous, files] = [stat.get("anon"), stat.get("file")];
  return anonymous === undefined || files === undefined ? undefined : anonymous + files;
}

function tasks(texts: CgroupTexts): CgroupSample["tasks"] {
  const current = parseNumber(texts.get("pids.current"));
  return current === undefined ? undefined : { current, limit: parseNumber(texts.get("pids.max")) };
}

function cpuLimits(texts: CgroupTexts): CgroupSample["cpuLimits"] {
  const weight = parseNumber(texts.get("cpu.weight"));
  const [quota, period] = (texts.get("cpu.max") ?? "").trim().split(" ");
  if (weight === undefined) return undefined;
  // The v1 shares for a weight, as cAdvisor converts it back.
  const shares = 2 + Math.trunc(((weight - 1) * 262_142) / 9_999);
  return { shares, quota: parseNumber(quota), period: parseNumber(period) };
}

/** Parses lines such as `8:0 rbytes=1 wbytes=2 rios=3 wios=4 …`; fields with no activity are omitted. */
export function parseIoStat(text: string | undefined): DeviceSample[] {
  return (text ?? "").split("\n").flatMap((line) => {
    const match = /^(\d+):(\d+) /u.exec(line);
    if (match === null) return [];
    const fields = new Map(line.split(" ").map((field) => [field.split("=")[0], field.split("=")[1]]));
    const count = (name: string): number | undefined => parseNumber(fields.get(name));
    const cost = {
      usage: count("cost.usage"),
      wait: count("cost.wait"),
      indebt: count("cost.indebt"),
      indelay: count("cost.indelay"),
    };
    return [
      {
        major: Number(match[1]),
        minor: Number(match[2]),
        readBytes: count("rbytes"),
        writtenBytes: count("wbytes"),
        reads: count("rios"),
        writes: count("wios"),
        ...(cost.usage !== undefined && { cost }),
      },
    ];
  });
}
