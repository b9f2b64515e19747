import type { FsStats, VolumeStats } from "./summary-types.ts";

export interface ContainerStorage {
  readonly name: string;
  /** The container's writable layer. */
  readonly rootfs: FsStats | undefined;
  readonly logs: FsStats | undefined;
}

export interface PodStorage {
  /** By container ID. */
  readonly containers: ReadonlyMap<string, ContainerStorage>;
  readonly volumes: readonly VolumeStats[];
  /** When the first of those on the node's disk was measured, monotonic ms; undefined: none was. */
  readonly volumesMs: number | undefined;
  /** Everything of the pod that counts as ephemeral storage. */
  readonly ephemeral: FsStats | undefined;
}

/** Usage of the node's disks. */
export interface NodeStorage {
  readonly fs: FsStats | undefined;
  readonly imageFs: FsStats | undefined;
  readonly containerFs: FsStats | undefined;
  /** By UID. */
  readonly pods: ReadonlyMap<string, PodStorage>;
}
