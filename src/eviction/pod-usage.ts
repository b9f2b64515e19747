import type { Pod } from "../api/pod.ts";
import type { StoragePart } from "./file-systems.ts";
import type { Signal, StarvedResource } from "./thresholds.ts";
import { resourceOf } from "./thresholds.ts";

/** What something takes on a disk. */
export interface DiskUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** Unknown values are undefined. */
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
  /** It is on the node's disk and not shared. */
  readonly isLocal: boolean;
}

/** A pod's usage of the node. Unknown values are undefined; unrequested ones may be. */
export interface PodUsage {
  /** Working set. */
  readonly memoryBytes?: number | undefined;
  readonly swapBytes?: number | undefined;
  readonly processes?: number | undefined;
  readonly containers: readonly ContainerUsage[];
  readonly volumes: readonly VolumeUsage[];
  /** Everything of the pod that counts as ephemeral storage. */
  readonly ephemeralBytes?: number | undefined;
}

/** A pod's usage of a signal's resource; undefined: unknown. @param parts of its storage that count */
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

/** Missing values count as zero, as upstream: a container that has written nothing yet has no figures. */
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

/** Reads the usage of pods. Unknown pods are omitted. */
export interface PodUsageReader {
  /** Memory and processes, freshly measured. By UID. */
  readRunning(pods: readonly Pod[], signal: AbortSignal): Promise<ReadonlyMap<string, PodUsage>>;
  /**
   * Storage on the node's disks, by UID.
   * @param how anew: measured now. kept: values may be as old as volumeStatsAggPeriod. limits: the same, but writable
   *   layers, which only the runtime can measure, are left out unless a pod limits them
   */
  readStorage(
    pods: readonly Pod[],
    how: "anew" | "kept" | "limits",
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, PodUsage>>;
  /**
   * Whether the writable layers of these removed containers are gone from the disk. False also for a container whose
   * layer was never measured while it ran: runtimes do not say.
   */
  areLayersFreed(containers: readonly string[]): Promise<boolean>;
}
