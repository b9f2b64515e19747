import { readFile, writeFile } from "node:fs/promises";

/** The unit of CPU times in /proc (USER_HZ), whatever the kernel's own clock. */
const ticksPerSecond = 100;

export interface Usage {
  /** Resident memory, current and peak. */
  readonly rssMiB: number;
  readonly peakRssMiB: number;
  /** User and system time since the process started. */
  readonly cpuMs: number;
  /** The same for its exited child processes. */
  readonly spawnedCpuMs: number;
}

/** Resets the peak of resident memory (proc_pid_clear_refs(5)). */
export async function resetPeak(pid: number): Promise<void> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
}

/** Rejects when the process is gone. */
export async function processUsage(pid: number): Promise<Usage> {
  const [status, stat] = await Promise.all([
    readFile(`/proc/${pid}/status`, "utf8"),
    readFile(`/proc/${pid}/stat`, "utf8"),
  ]);
  const kibibytes = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
  // The name, in parentheses, may contain spaces; utime, stime, cutime and cstime are the 12th to 15th field after it
  // (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const milliseconds = (first: number): number =>
    ((Number(fields[first]) + Number(fields[first + 1])) / ticksPerSecond) * 1000;
  return {
    rssMiB: kibibytes("VmRSS") / 1024,
    peakRssMiB: kibibytes("VmHWM") / 1024,
    cpuMs: milliseconds(11),
    spawnedCpuMs: milliseconds(13),
  };
}
