import { type CgroupSample, workingSet } from "./cgroup-sample.ts";
import { type Depth, isAtLeast } from "./depth.ts";
import {
  parseBootTime,
  parseKeyed,
  parseMemInfo,
  parseNetDev,
  parseNumber,
  parsePressure,
  parseTaskCount,
} from "../base/kernel-text.ts";
import type { MachineSample } from "./node-sample.ts";

const resourcePaths = ["/proc/meminfo", "/proc/stat", "/proc/vmstat"];
const summaryPaths = [
  "/proc/self/net/dev",
  "/proc/loadavg",
  "/proc/sys/kernel/pid_max",
  "/proc/sys/kernel/threads-max",
  "/proc/pressure/cpu",
  "/proc/pressure/memory",
  "/proc/pressure/io",
];

/** Files of the machine besides its root cgroup. */
export function machinePaths(depth: Depth): readonly string[] {
  return isAtLeast(depth, "summary") ? [...resourcePaths, ...summaryPaths] : resourcePaths;
}

/**
 * The machine's sample: its root cgroup, and values from /proc. A v2 root cgroup has no figure for swap, a v1 root
 * cgroup no limit, and neither has pressure.
 */
export function machineSample(
  version: 1 | 2,
  root: CgroupSample,
  texts: ReadonlyMap<string, string | undefined>,
  timeMs: number,
): MachineSample {
  const meminfo = parseMemInfo(texts.get("/proc/meminfo"));
  const bytes = (name: string): number => meminfo.get(name) ?? 0;
  const limits = ["pid_max", "threads-max"].flatMap((name) => parseNumber(texts.get(`/proc/sys/kernel/${name}`)) ?? []);
  const netDev = texts.get("/proc/self/net/dev");
  const pressure = parsePressure(texts.get("/proc/pressure/memory"));
  const own = root.memory ?? memoryOfMachine(meminfo, parseKeyed(texts.get("/proc/vmstat")));
  const swap = version === 1 ? own.swap : bytes("SwapTotal") - bytes("SwapFree");
  return {
    sample: {
      ...root,
      timeMs,
      ...(root.cpu && { cpu: { ...root.cpu, pressure: parsePressure(texts.get("/proc/pressure/cpu")) } }),
      memory: { ...own, swap, limit: bytes("MemTotal"), swapLimit: bytes("SwapTotal"), pressure },
    },
    bootedMs: parseBootTime(texts.get("/proc/stat")) ?? timeMs,
    swapTotalBytes: bytes("SwapTotal"),
    swapFreeBytes: bytes("SwapFree"),
    network: netDev === undefined ? undefined : { timeMs, interfaces: parseNetDev(netDev) },
    tasks: parseTaskCount(texts.get("/proc/loadavg")),
    maxTasks: limits.length === 0 ? undefined : Math.min(...limits),
    ioPressure: parsePressure(texts.get("/proc/pressure/io")),
  };
}

/** For kernels whose v2 root cgroup has no memory.stat. */
function memoryOfMachine(
  meminfo: ReadonlyMap<string, number>,
  vmstat: ReadonlyMap<string, number>,
): NonNullable<CgroupSample["memory"]> {
  const bytes = (name: string): number => meminfo.get(name) ?? 0;
  const usage = bytes("MemTotal") - bytes("MemFree");
  const inactiveFile = bytes("Inactive(file)");
  return {
    usage,
    workingSet: workingSet(usage, inactiveFile),
    rss: bytes("AnonPages"),
    cache: bytes("Cached") + bytes("Buffers"),
    mappedFile: bytes("Mapped"),
    activeFile: bytes("Active(file)"),
    inactiveFile,
    swap: bytes("SwapTotal") - bytes("SwapFree"),
    pageFaults: vmstat.get("pgfault") ?? 0,
    majorPageFaults: vmstat.get("pgmajfault") ?? 0,
  };
}
