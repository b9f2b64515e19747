import type { MountedDevice } from "../ports/stats-files.ts";
import type { DeviceSample } from "./cgroup-sample.ts";

/** What the kernel counts of a block device since the machine's start: Documentation/admin-guide/iostats.rst. */
export interface DiskCounters {
  readonly major: number;
  readonly minor: number;
  /** As the kernel has it, `sda1`, or as the mount table does, `mapper/vg-root`: below /dev. */
  readonly name: string;
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  /** Requests at this moment. */
  readonly inProgress: number;
  readonly ioMs: number;
  /** Each request's time, added up. */
  readonly weightedMs: number;
}

/** A sector of these counters, whatever the device's own are. */
const sectorBytes = 512;

/** Lines of /proc/diskstats; those of kernels before 2.6.25, with fewer fields for partitions, are skipped. */
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
 * The disks of which something is mounted, each once, by the mount table's names. A file system of several devices has
 * a number of its own: its device is known by its name.
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

/** The same as a cgroup's figures of the device. */
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
