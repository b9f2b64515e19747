import type { MountPoint } from "../ports/mounts.ts";

/** A file system that a volume has for itself, in memory. Volumes without one are on the node's disk. */
export interface OwnFileSystem {
  /**
   * Whether a mount at the volume's directory is it.
   * @throws VolumeError if it must not be there
   */
  readonly is: (mount: MountPoint) => boolean;
  /** @throws VolumeError, or an error of the mount */
  readonly mount: (directory: string) => Promise<void>;
}
