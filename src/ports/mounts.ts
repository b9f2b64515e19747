export interface MountPoint {
  readonly target: string;
  readonly source: string;
  readonly fileSystem: string;
  readonly options: readonly string[];
  /** Of the file system, equal for all its mounts: `major:minor`; omitted if not requested. */
  readonly device?: string;
  /** The mounted directory of the file system; omitted: its root. */
  readonly root?: string;
  /** Whether mounts below propagate to other mount namespaces; omitted if not requested. */
  readonly isShared?: boolean;
}

/** Mounts of podwright's own mount namespace. */
export interface Mounts {
  /** Every mount, in mount order (/proc/self/mountinfo). */
  list(): Promise<MountPoint[]>;
  /** Those at and below a path, which has no links. On a full node that is far less work than all. */
  below(path: string): Promise<MountPoint[]>;
  mount(mount: MountPoint): Promise<void>;
  /**
   * Unmounts; a target that is not a mount point is not an error.
   * @param options force: requests to an unresponsive server fail
   */
  unmount(target: string, options?: { readonly lazy?: boolean; readonly force?: boolean }): Promise<void>;
}

/** Whether something is mounted at a path, which has no links. */
export async function isMountPoint(mounts: Pick<Mounts, "below">, path: string): Promise<boolean> {
  return (await mounts.below(path)).some(({ target }) => target === path);
}
