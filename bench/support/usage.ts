import { readFile } from "node:fs/promises";

/** Linux tells CPU time in these, whatever the kernel's own clock (USER_HZ). */
const ticksPerSecond = 100;

/** What one process uses, from /proc. */
export interface Usage {
  /** Resident now, and at most so far. */
  readonly rssMiB: number;
  readonly peakRssMiB: number;
  /** User and system time since the process started. */
  readonly cpuMs: number;
}

/** Rejects when the process is gone. */
export async function processUsage(pid: number): Promise<Usage> {
  const [status, stat] = await Promise.all([
    readFile(`/proc/${pid}/status`, "utf8"),
    readFile(`/proc/${pid}/stat`, "utf8"),
  ]);
  const kibibytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
  // The name, in parentheses, may hold spaces; utime and stime are the 12th and 13th field after it (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return {
    rssMiB: kibibytes("VmRSS") / 1024,
    peakRssMiB: kibibytes("VmHWM") / 1024,
    cpuMs: (ticks / ticksPerSecond) * 1000,
  };
}
