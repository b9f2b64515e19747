import type { Pod } from "../api/pod.ts";
import type { StoragePart } from "./file-systems.ts";
import type { Signal, StarvedResource } from "./thresholds.ts";
import { resourceOf } from "./thresholds.ts";

/** What something takes on a disk. */
export interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** What is not known is undefined. */
export interface ContainerUsage {
  readonly name: string;
  /** Working set. */
  readonly memoryBytes?: number | undefined;
  /** Its writable layer. */
  readonly rootfs?: DiskUsage | undefined;
  readonly logs?: DiskUsage | undefined;
}

export interface VolumeUsage extends DiskUsage {
  readonly name: string;
  /** It lies on the node's disk, and is the node's own. */
  readonly isLocal: boolean;
}

/** What a pod uses of the node. What is not known is undefined; what was not asked for may be. */
export interface PodUsage {
  /** Working set. */
  readonly memoryBytes?: number | undefined;
  readonly swapBytes?: number | undefined;
  readonly processes?: number | undefined;
  readonly containers: readonly ContainerUsage[];
  readonly volumes: readonly VolumeUsage[];
  /** All of the pod that counts against the node's ephemeral storage. */
  readonly ephemeralBytes?: number | undefined;
}

/** What a pod uses of a signal's resource; undefined: not known. @param parts of its storage that count */
export function usageOf(
  usage: PodUsage | undefined,
  signal: Signal,
  parts: readonly StoragePart[],
): number | undefined {
  if (usage === undefined) return undefined;
  const resource = resourceOf(signal);
  if (resource === "memory") return usage.memoryBytes;
  return resource === "pids" ? usage.processes : diskUsage(usage, resource, parts);
}

/** What is missing counts nothing, as upstream: a container that has written nothing yet has no figures. */
function diskUsage(
  { containers, volumes }: PodUsage,
  resource: Exclude<StarvedResource, "memory" | "pids">,
  parts: readonly StoragePart[],
): number {
  const amount = (part: StoragePart, of: DiskUsage | undefined): number => {
    if (of === undefined || !parts.includes(part)) return 0;
    return resource === "inodes" ? of.inodes : of.bytes;
  };
  const ofContainers = containers.reduce(
    (sum, { rootfs, logs }) => sum + amount("rootfs", rootfs) + amount("logs", logs),
    0,
  );
  return volumes.reduce((sum, volume) => sum + (volume.isLocal ? amount("volumes", volume) : 0), ofContainers);
}

/** Reads what pods use. Pods of which nothing is known are left out. */
export interface PodUsageReader {
  /** Memory and processes, measured anew. By UID. */
  readRunning(pods: readonly Pod[], signal: AbortSignal): Promise<ReadonlyMap<string, PodUsage>>;
  /**
   * What they store on the node's disks, by UID.
   * @param anew measured now; otherwise the figures may be as old as volumeStatsAggPeriod
   */
  readStorage(pods: readonly Pod[], anew: boolean, signal: AbortSignal): Promise<ReadonlyMap<string, PodUsage>>;
}
