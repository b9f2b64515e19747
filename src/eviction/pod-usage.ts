import type { Pod } from "../api/pod.ts";
import type { StoragePart } from "./file-systems.ts";
import type { Signal, StarvedResource } from "./thresholds.ts";
import { resourceOf } from "./thresholds.ts";

/** What something takes on a disk. */
export interface DiskUsage {
  readonly bytes: number;
  /** Undefined: unknown. */
  readonly inodes?: number | undefined;
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

/** Unknown values are undefined. */
export interface VolumeUsage {
  readonly name: string;
  readonly bytes?: number | undefined;
  readonly inodes?: number | undefined;
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
  /** When the first of the volumes was measured, monotonic ms: walks that take long show the past. Undefined: none was. */
  readonly volumesMs?: number | undefined;
  /** Everything of the pod that counts as ephemeral storage. */
  readonly ephemeralBytes?: number | undefined;
}

/** A pod's usage of one resource. */
export interface Amount {
  readonly value: number;
  /** False: some of it is unknown, so that the pod uses at least this. */
  readonly isWhole: boolean;
}

/** A pod's usage of a signal's resource; undefined: unknown. @param parts of its storage that count, if that is known */
export function usageOf(
  usage: PodUsage | undefined,
  signal: Signal,
  parts: readonly StoragePart[] | undefined,
): Amount | undefined {
  if (usage === undefined || parts === undefined) return undefined;
  const resource = resourceOf(signal);
  if (resource === "ephemeral-storage" || resource === "inodes") return diskUsage(usage, resource, parts);
  const value = resource === "memory" ? usage.memoryBytes : usage.processes;
  return value === undefined ? undefined : { value, isWhole: true };
}

/** Without the figures of volumes: they are too old to count. The pod uses at least what is left. Pure. */
export function withoutVolumes(usage: PodUsage): PodUsage {
  const volumes = usage.volumes.map(({ name, isLocal }) => ({ name, isLocal }));
  const { ephemeralBytes } = usage;
  const ofVolumes = usage.volumes.reduce((sum, { bytes = 0, isLocal }) => sum + (isLocal ? bytes : 0), 0);
  const rest = ephemeralBytes === undefined ? undefined : Math.max(0, ephemeralBytes - ofVolumes);
  return { ...usage, volumes, volumesMs: undefined, ephemeralBytes: rest };
}

/**
 * When what counts of a usage was measured, monotonic ms. Pure.
 * @param atMs when everything but the volumes was
 */
export function measuredMs(usage: PodUsage, atMs: number, parts: readonly StoragePart[] | undefined): number {
  const ofVolumes = parts?.includes("volumes") === true ? usage.volumesMs : undefined;
  return Math.min(atMs, ofVolumes ?? atMs);
}

/** The sum of what is known: a missing figure does not count as 0. */
function diskUsage(
  { containers, volumes }: PodUsage,
  resource: Exclude<StarvedResource, "memory" | "pids">,
  parts: readonly StoragePart[],
): Amount {
  const counted = [
    ...containers.flatMap(({ rootfs, logs }) => [
      ...(parts.includes("rootfs") ? [rootfs] : []),
      ...(parts.includes("logs") ? [logs] : []),
    ]),
    ...(parts.includes("volumes") ? volumes.filter(({ isLocal }) => isLocal) : []),
  ].map((of) => (resource === "inodes" ? of?.inodes : of?.bytes));
  const value = counted.reduce<number>((sum, amount = 0) => sum + amount, 0);
  return { value, isWhole: !counted.includes(undefined) };
}

/** IDs of removed containers. */
export interface LayersLeft {
  readonly there: readonly string[];
  /** Their layers were never measured while they ran: runtimes do not say where they are. */
  readonly unknown: readonly string[];
}

/** What a measurement is of: memory and processes, or storage. */
export type MeasuredKind = "running" | "storage";

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
  /** The removed containers whose writable layers are not known to be gone from the disk. */
  layersLeft(containers: readonly string[]): Promise<LayersLeft>;
  /** Calls back, until disposed of, when others have measured all running pods. @param listener's read: by UID */
  onMeasured(listener: (kind: MeasuredKind, read: () => ReadonlyMap<string, PodUsage>) => void): Disposable;
}
