import type { Cgroups } from "../ports/cgroups.ts";
import type { Files } from "../ports/files.ts";

/** The machine's properties that pods' resources depend on. */
export interface MachineInfo {
  readonly processors: number;
  readonly memoryBytes: bigint;
  /** Of a page of memory. */
  readonly pageBytes: number;
  readonly cgroupVersion: 1 | 2;
  /** Huge page sizes supported by the kernel, ascending, in bytes. */
  readonly hugePageSizes: readonly bigint[];
  /** Bytes reserved for huge pages, by size. */
  readonly hugePages: ReadonlyMap<bigint, bigint>;
  readonly swapBytes: bigint;
  /** Of the file system of pods' directories; undefined: unknown. */
  readonly ephemeralStorageBytes?: bigint | undefined;
  /** The kernel's limit of processes and threads; undefined: unknown. */
  readonly pids: bigint | undefined;
  /** Whether cgroups can limit swap. */
  readonly swapAccounting: boolean;
  /** `uname -r` */
  readonly kernelRelease: string;
  /** Whether the kernel enforces AppArmor profiles. */
  readonly appArmor: boolean;
  /** Whether SELinux is on. */
  readonly seLinux: boolean;
  /** Per-CPU counters that reveal other containers' activity: masked in pods. */
  readonly maskedPaths: readonly string[];
}

const maxProcFileBytes = 4 * 1024 * 1024;
const usualPageBytes = 4096;
/** AT_PAGESZ (getauxval(3)). */
const pageSizeEntry = 6n;

/** Reads /proc and /sys. @throws FileError when /proc is not there */
export async function readMachineInfo(files: Files, cgroups: Pick<Cgroups, "version">): Promise<MachineInfo> {
  const text = async (path: string): Promise<string> =>
    new TextDecoder().decode(await files.read(path, maxProcFileBytes));
  const meminfo = await text("/proc/meminfo");
  const cpuinfo = await text("/proc/cpuinfo");
  const pages = await files.list("/sys/kernel/mm/hugepages");
  const sizes = pages
    .map((page) => kibibytes(/^hugepages-(\d+)kB$/u.exec(page.name)))
    .filter((size) => size > 0n)
    .toSorted((a, b) => Number(a - b));
  const pageCount = async (size: bigint): Promise<bigint> =>
    BigInt((await text(`/sys/kernel/mm/hugepages/hugepages-${size / 1024n}kB/nr_hugepages`)).trim());
  return {
    processors: Math.max(1, cpuinfo.match(/^processor\s*:/gmu)?.length ?? 0),
    cgroupVersion: cgroups.version,
    pageBytes: await pageBytes(files),
    memoryBytes: kibibytes(/^MemTotal:\s+(\d+) kB$/mu.exec(meminfo)),
    hugePageSizes: sizes,
    hugePages: new Map(await Promise.all(sizes.map(async (size) => [size, size * (await pageCount(size))] as const))),
    swapBytes: kibibytes(/^SwapTotal:\s+(\d+) kB$/mu.exec(meminfo)),
    pids: await mostTasks(files, text),
    swapAccounting: await hasSwapAccounting(files, cgroups.version),
    kernelRelease: (await text("/proc/sys/kernel/osrelease")).trim(),
    appArmor: await hasAppArmor(files),
    seLinux: (await files.stat("/sys/fs/selinux/enforce")) !== undefined,
    maskedPaths: await throttleCounters(files),
  };
}

/** Both files have a limit of the whole machine. */
async function mostTasks(files: Files, text: (path: string) => Promise<string>): Promise<bigint | undefined> {
  let least: bigint | undefined;
  for (const path of ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"]) {
    if ((await files.stat(path)) === undefined) continue;
    const limit = BigInt((await text(path)).trim());
    if (least === undefined || limit < least) least = limit;
  }
  return least;
}

/** As the kernel tells each program at its start: pairs of a type and a value. */
async function pageBytes(files: Files): Promise<number> {
  const path = "/proc/self/auxv";
  if ((await files.stat(path)) === undefined) return usualPageBytes;
  const bytes = Uint8Array.from(await files.read(path, maxProcFileBytes));
  const words = new BigUint64Array(bytes.buffer, 0, Math.floor(bytes.length / 8));
  const at = words.findIndex((word, index) => index % 2 === 0 && word === pageSizeEntry);
  return at < 0 ? usualPageBytes : Number(words[at + 1] ?? usualPageBytes);
}

function kibibytes(match: RegExpExecArray | null): bigint {
  return BigInt(match?.[1] ?? 0) * 1024n;
}

/** On v2 the root has no such file; every cgroup below it has, when the controller is enabled. */
async function hasSwapAccounting(files: Files, version: 1 | 2): Promise<boolean> {
  if (version === 1) return (await files.stat("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")) !== undefined;
  for (const { name, type } of await files.list("/sys/fs/cgroup")) {
    if (type !== "directory") continue;
    if ((await files.stat(`/sys/fs/cgroup/${name}/memory.swap.max`)) !== undefined) return true;
  }
  return false;
}

async function hasAppArmor(files: Files): Promise<boolean> {
  const parameter = "/sys/module/apparmor/parameters/enabled";
  if ((await files.stat(parameter)) === undefined) return false;
  return new TextDecoder().decode(await files.read(parameter, maxProcFileBytes)).startsWith("Y");
}

async function throttleCounters(files: Files): Promise<string[]> {
  const paths: string[] = [];
  for (const { name } of await files.list("/sys/devices/system/cpu")) {
    const path = `/sys/devices/system/cpu/${name}/thermal_throttle`;
    if (/^cpu\d+$/u.test(name) && (await files.stat(path)) !== undefined) paths.push(path);
  }
  return paths;
}
