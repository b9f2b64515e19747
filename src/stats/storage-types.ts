import type { FsStats, VolumeStats } from "./summary-types.ts";

export interface ContainerStorage {
  readonly name: string;
  /** What the container has written to its own file system. */
  readonly rootfs: FsStats | undefined;
  readonly logs: FsStats | undefined;
}

export interface PodStorage {
  /** By container id. */
  readonly containers: ReadonlyMap<string, ContainerStorage>;
  readonly volumes: readonly VolumeStats[];
  /** Everything of the pod that counts against the node's ephemeral storage. */
  readonly ephemeral: FsStats | undefined;
}

/** What lies on the node's disks. */
export interface NodeStorage {
  readonly fs: FsStats | undefined;
  readonly imageFs: FsStats | undefined;
  readonly containerFs: FsStats | undefined;
  /** By UID. */
  readonly pods: ReadonlyMap<string, PodStorage>;
}
