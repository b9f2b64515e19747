import type { Files } from "../ports/files.ts";
import { parseBootTime } from "../base/kernel-text.ts";

/** A Node's facts about its machine. */
export interface NodeFacts {
  readonly processors: number;
  readonly memoryBytes: bigint;
  readonly swapBytes: bigint;
  /** Of the file system of pods' directories; undefined: ephemeral storage is not counted. */
  readonly ephemeralStorageBytes?: bigint | undefined;
  readonly hugePages: readonly { readonly sizeBytes: bigint; readonly count: bigint }[];
  /** `uname -r` */
  readonly kernelVersion: string;
  /** PRETTY_NAME of os-release. */
  readonly osImage: string;
  readonly machineId: string;
  readonly systemUuid: string;
  /** Changes with every boot. */
  readonly bootId: string;
}

/** Files of the machine ID, in order of precedence. */
export const machineIdFiles = ["/etc/machine-id", "/var/lib/dbus/machine-id"] as const;
/** The system UUID as cAdvisor reads it: without firmware tables the machine ID is used. */
export const systemUuidFiles = [
  "/sys/class/dmi/id/product_uuid",
  "/proc/device-tree/system-id",
  "/proc/device-tree/vm,uuid",
  "/etc/machine-id",
] as const;
const maxFileBytes = 64 * 1024;
/** Large on machines with many CPUs, because of its interrupt counters. */
const maxProcStatBytes = 4 * 1024 * 1024;

/** Reads /proc, /sys and /etc. Missing values are empty. */
export async function readNodeFacts(
  files: Pick<Files, "read">,
  machine: {
    readonly processors: number;
    readonly memoryBytes: bigint;
    readonly hugePageSizes: readonly bigint[];
    readonly ephemeralStorageBytes?: bigint | undefined;
  },
): Promise<NodeFacts> {
  const text = async (...paths: readonly string[]): Promise<string> => {
    for (const path of paths) {
      const bytes = await files.read(path, maxFileBytes).catch(() => new Uint8Array());
      const content = trimmedText(new TextDecoder().decode(bytes));
      if (content !== "") return content;
    }
    return "";
  };
  const machineId = await text(...machineIdFiles);
  const osRelease = await text("/etc/os-release", "/usr/lib/os-release");
  const kibibytes = /^SwapTotal:\s+(\d+) kB$/mu.exec(await text("/proc/meminfo"))?.[1] ?? "0";
  return {
    processors: machine.processors,
    memoryBytes: machine.memoryBytes,
    ...(machine.ephemeralStorageBytes !== undefined && { ephemeralStorageBytes: machine.ephemeralStorageBytes }),
    swapBytes: BigInt(kibibytes) * 1024n,
    hugePages: await Promise.all(
      machine.hugePageSizes.map(async (sizeBytes) => {
        const count = await text(`/sys/kernel/mm/hugepages/hugepages-${sizeBytes / 1024n}kB/nr_hugepages`);
        return { sizeBytes, count: /^\d+$/u.test(count) ? BigInt(count) : 0n };
      }),
    ),
    kernelVersion: await text("/proc/sys/kernel/osrelease"),
    osImage: /^PRETTY_NAME="?([^"\n]*)"?$/mu.exec(osRelease)?.[1] ?? "Linux",
    machineId,
    systemUuid: await text(...systemUuidFiles),
    bootId: await text("/proc/sys/kernel/random/boot_id"),
  };
}

/** Boot time of the machine, wall clock ms; undefined: unknown. */
export async function readBootTime(files: Pick<Files, "read">): Promise<number | undefined> {
  const bytes = await files.read("/proc/stat", maxProcStatBytes).catch(() => undefined);
  return bytes && parseBootTime(new TextDecoder().decode(bytes));
}

/** Trimmed; device tree strings end with a zero byte. Pure. */
export function trimmedText(text: string): string {
  return text.replace(/\0+$/u, "").trim();
}
