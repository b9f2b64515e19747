/** Parsers of what the kernel writes into cgroupfs and /proc. Pure; what can't be read is undefined, never a guess. */

/** A file of one number. */
export function parseNumber(text: string | undefined): number | undefined {
  const trimmed = text?.trim() ?? "";
  return /^-?\d+$/u.test(trimmed) ? Number(trimmed) : undefined;
}

/** Lines of `name value`, as of memory.stat and cpu.stat. */
export function parseKeyed(text: string | undefined): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of text?.split("\n") ?? []) {
    const space = line.indexOf(" ");
    if (space > 0) values.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return values;
}

export interface PressureShare {
  /** As the kernel counts: microseconds. */
  readonly total: number;
  /** Per cent of the last 10, 60 and 300 s. */
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
}

/** Pressure stall information: how long some, or all, tasks were stalled on a resource. */
export interface Pressure {
  readonly some: PressureShare;
  readonly full: PressureShare;
}

const noPressure: PressureShare = { total: 0, avg10: 0, avg60: 0, avg300: 0 };

/** Undefined without PSI: also when its file exists but is empty. Old kernels have no `full` for the CPU. */
export function parsePressure(text: string | undefined): Pressure | undefined {
  const shares = new Map<string, PressureShare>();
  for (const line of text?.split("\n") ?? []) {
    const [name = "", ...fields] = line.split(" ");
    const value = (field: string): number => Number(fields.find((each) => each.startsWith(`${field}=`))?.split("=")[1]);
    if (name !== "some" && name !== "full") continue;
    shares.set(name, {
      total: value("total"),
      avg10: value("avg10"),
      avg60: value("avg60"),
      avg300: value("avg300"),
    });
  }
  const some = shares.get("some");
  return some && { some, full: shares.get("full") ?? noPressure };
}

/** Counters of one network interface since it was made. */
export interface InterfaceCounters {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** What is no interface to the outside: the loopback, and the other ends of pods' own. */
const inner = ["lo", "veth", "docker", "nerdctl"];

/** /proc/<pid>/net/dev: the interfaces of the process's network namespace, without inner ones. */
export function parseNetDev(text: string | undefined): InterfaceCounters[] {
  const interfaces: InterfaceCounters[] = [];
  for (const line of text?.split("\n") ?? []) {
    const colon = line.lastIndexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim();
    if (name === "" || inner.some((prefix) => name.startsWith(prefix))) continue;
    const fields = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/u)
      .map(Number);
    const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0] = fields;
    const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = fields.slice(8);
    interfaces.push({ name, rxBytes, rxPackets, rxErrors, rxDropped, txBytes, txPackets, txErrors, txDropped });
  }
  return interfaces;
}

/** /proc/meminfo, in bytes. */
export function parseMemInfo(text: string | undefined): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const [, name = "", amount, unit] of (text ?? "").matchAll(/^([^:\s]+):\s+(\d+)( kB)?$/gmu)) {
    values.set(name, Number(amount) * (unit === undefined ? 1 : 1024));
  }
  return values;
}

/** Tasks of the machine, by the fourth field of /proc/loadavg: `2/3518`. */
export function parseTaskCount(loadavg: string | undefined): number | undefined {
  const match = /^\S+ \S+ \S+ \d+\/(\d+) /u.exec(loadavg ?? "");
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** When the machine was started, wall clock ms, by `btime` of /proc/stat. */
export function parseBootTime(stat: string | undefined): number | undefined {
  const match = /^btime (\d+)$/mu.exec(stat ?? "");
  return match?.[1] === undefined ? undefined : Number(match[1]) * 1000;
}

/** What one process uses, by /proc/<pid>/stat. */
export interface ProcessUsage {
  readonly cpuNanoseconds: number;
  readonly virtualBytes: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** After the machine's start. */
  readonly startedMs: number;
}

/** USER_HZ: the kernel reports ticks of a hundredth of a second on every current architecture. */
export const tickNanoseconds = 10_000_000;

export function parseProcessStat(text: string | undefined): ProcessUsage | undefined {
  // The name may hold anything; fields are counted from what follows it, which is the third.
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ") ?? [];
  const field = (index: number): number => Number(fields[index - 3]);
  if (fields.length < 22) return undefined;
  return {
    cpuNanoseconds: (field(14) + field(15)) * tickNanoseconds,
    virtualBytes: field(23),
    pageFaults: field(10),
    majorPageFaults: field(12),
    startedMs: field(22) * 10,
  };
}

/**
 * Memory of a process, by /proc/<pid>/status: /proc/<pid>/stat has it in pages, whose size is the machine's. Undefined
 * for a thread of the kernel.
 */
export function parseResidentBytes(status: string | undefined): number | undefined {
  return parseMemInfo(status).get("VmRSS");
}

/** The cgroup of a process by /proc/<pid>/cgroup: of the unified tree, or of a controller of v1. */
export function parseOwnCgroup(text: string | undefined, controller: string | undefined): string | undefined {
  for (const line of text?.split("\n") ?? []) {
    const [, names = "", ...path] = line.split(":");
    const isWanted = controller === undefined ? line.startsWith("0::") : names.split(",").includes(controller);
    if (isWanted) return path.join(":");
  }
  return undefined;
}

/** The soft limit of open files by /proc/<pid>/limits; −1: none. */
export function parseOpenFilesLimit(text: string | undefined): number | undefined {
  return parseLimit(text, "open files");
}

/** A soft limit by /proc/<pid>/limits; −1: none. @param of as the kernel names it: `address space` */
export function parseLimit(text: string | undefined, of: string): number | undefined {
  const line = (text ?? "").split("\n").find((each) => each.startsWith(`Max ${of} `));
  const soft = /^\s+(\d+|unlimited)\s/u.exec(line?.slice(`Max ${of}`.length) ?? "")?.[1];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? -1 : Number(soft);
}

/** Process ids of a cgroup.procs; those of other PID namespaces appear as 0. */
export function parsePids(text: string | undefined): number[] {
  return (text ?? "")
    .split("\n")
    .map(Number)
    .filter((pid) => pid > 0);
}
