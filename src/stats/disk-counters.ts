import type { MountedDevice } from "../ports/stats-files.ts";
import type { DeviceSample } from "./cgroup-sample.ts";

/** The kernel's counters of a block device since boot: Documentation/admin-guide/iostats.rst. */
export interface DiskCounters {
  readonly major: number;
  readonly minor: number;
  /** Name below /dev: `sda1` from the kernel, or `mapper/vg-root` from the mount table. */
  readonly name: string;
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  /** Requests in progress. */
  readonly inProgress: number;
  readonly ioMs: number;
  /** The sum of all request times. */
  readonly weightedMs: number;
}

/** The unit of these counters, whatever the device's sector size. */
const sectorBytes = 512;

/** Parses /proc/diskstats; lines of kernels before 2.6.25, which have fewer fields for partitions, are skipped. */
export function parseDiskStats(text: string | undefined): DiskCounters[] {
  return (text ?? "").split("\n").flatMap((line) => {
    const [major = "", minor = "", name = "", ...fields] = line.trim().split(/\s+/u);
    const counts = fields.slice(0, 11).map(Number);
    if (counts.length < 11 || ![Number(major), Number(minor), ...counts].every(Number.isSafeInteger)) return [];
    const [reads = 0, readsMerged = 0, sectorsRead = 0, readMs = 0, writes = 0, writesMerged = 0] = counts;
    const [sectorsWritten = 0, writeMs = 0, inProgress = 0, ioMs = 0, weightedMs = 0] = counts.slice(6);
    return [
      {
        ...{ major: Number(major), minor: Number(minor), name },
        ...{ reads, readsMerged, sectorsRead, readMs },
        ...{ writes, writesMerged, sectorsWritten, writeMs },
        ...{ inProgress, ioMs, weightedMs },
      },
    ];
  });
}

/**
 * Mounted disks, each once, under their names in the mount table. A file system that spans devices has its own device
 * number, so it is matched by name.
 */
export function mountedDisks(disks: readonly DiskCounters[], mounted: readonly MountedDevice[]): DiskCounters[] {
  const byNumber = new Map<string, DiskCounters>();
  for (const { source, number } of mounted) {
    const disk =
      disks.find(({ name }) => source === `/dev/${name}`) ?? disks.find((each) => deviceNumber(each) === number);
    if (disk === undefined || byNumber.has(deviceNumber(disk))) continue;
    byNumber.set(deviceNumber(disk), { ...disk, name: source.slice("/dev/".length) });
  }
  return [...byNumber.values()];
}

export function deviceNumber({ major, minor }: Pick<DiskCounters, "major" | "minor">): string {
  return `${major}:${minor}`;
}

/** The counters in the format of a cgroup's device figures. */
export function deviceSample({ major, minor, ...disk }: DiskCounters): DeviceSample {
  return {
    major,
    minor,
    readBytes: disk.sectorsRead * sectorBytes,
    writtenBytes: disk.sectorsWritten * sectorBytes,
    reads: disk.reads,
    writes: disk.writes,
  };
}
