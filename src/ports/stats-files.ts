/** Where the kernel shows its cgroups. */
export type CgroupLayout =
  | { readonly version: 2; readonly root: string }
  /** Directories of the hierarchies by controller: `memory` → `/sys/fs/cgroup/memory`. */
  | { readonly version: 1; readonly controllers: Readonly<Record<string, string>> };

/** A file system's usage, from statfs(2). */
export interface FileSystemUsage {
  readonly capacityBytes: number;
  /** What users other than root may still write. */
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** A block device of which something is mounted. */
export interface MountedDevice {
  /** `/dev/sda1`, `/dev/mapper/vg-root`, as the mount table has it. */
  readonly source: string;
  /** `major:minor` of the file system. */
  readonly number: string;
}

/** What a tree of files takes on its disk. */
export interface TreeUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** Descriptors that a process holds. */
export interface OpenFiles {
  readonly descriptors: number;
  readonly sockets: number;
}

/**
 * Cheap reads of kernel and disk statistics. Missing files are undefined, as containers exit while they are measured.
 * Nothing rejects, but what accesses a disk: with FileError `ETIMEDOUT`, which names it, while that does not answer.
 */
export interface StatsFiles {
  readonly cgroups: CgroupLayout;
  /** Files that the kernel writes when they are read (cgroupfs, /proc, /sys), each as text. Many at a time are cheap. */
  readTexts(paths: readonly string[]): Promise<(string | undefined)[]>;
  /** Names of the direct subdirectories; none when the directory is gone. */
  directories(path: string): Promise<string[]>;
  fileSystem(path: string): Promise<FileSystemUsage | undefined>;
  /** `/dev/sda1`, `tmpfs` …: what is mounted where the path lies. */
  deviceOf(path: string): Promise<string | undefined>;
  /** Shows whether two paths are on one file system, of which a btrfs with all its subvolumes is one. */
  fileSystemNumber(path: string): Promise<number | undefined>;
  /** Block devices of which something is mounted, each once. */
  mountedDevices(): Promise<readonly MountedDevice[]>;
  /**
   * For each process the directory in which the overlay that is its root keeps what is written to it; undefined: its
   * root is no overlay of this machine, or it is gone.
   */
  upperDirectories(pids: readonly number[]): Promise<(string | undefined)[]>;
  /** The tree with its top and its btrfs subvolumes, hard links once; what is mounted in it is left out. */
  treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage | undefined>;
  /** Of the regular files that lie directly in a directory, together. */
  filesUsage(directory: string): Promise<TreeUsage | undefined>;
  openFiles(pid: number): Promise<OpenFiles | undefined>;
  /** When the one of the paths that was changed first was changed, wall clock ms. */
  changed(paths: readonly string[]): Promise<number | undefined>;
}
