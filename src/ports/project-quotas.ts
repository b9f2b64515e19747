import type { TreeUsage } from "./stats-files.ts";

/** A file system that accounts for projects. */
export interface QuotaFileSystem {
  readonly type: "xfs" | "ext4";
  readonly mountPoint: string;
  /** `/dev/sda1` */
  readonly source: string;
}

/** The machine's lists of projects, in latin1, so that no byte of others' lines is changed. */
export interface ProjectLists {
  /** `/etc/projects`: lines `ID:PATH`. */
  readonly projects: string;
  /** `/etc/projid`: lines `NAME:ID`. */
  readonly projid: string;
}

/**
 * Project quotas (xfs_quota(8)), which count what the files of a project take, also those without a name. Paths are
 * absolute and plain ({@link isPlainPath}). Every method rejects if its answer is unknown.
 */
export interface ProjectQuotas {
  /** The file system of a path; undefined: it does not account for projects. */
  fileSystemOf(path: string, signal?: AbortSignal): Promise<QuotaFileSystem | undefined>;
  /** What a project's files take; undefined: the file system has no record of the project. */
  usage(path: string, on: QuotaFileSystem, project: number, signal?: AbortSignal): Promise<TreeUsage | undefined>;
  /** The project of a directory, not of the files in it; 0: none. */
  projectOf(directory: string, signal?: AbortSignal): Promise<number>;
  /** Gives an empty directory, and all that will be created in it, to a project, whose limit nothing reaches. */
  assign(directory: string, on: QuotaFileSystem, project: number, signal?: AbortSignal): Promise<void>;
  /** Removes the limit of a directory's project. */
  release(directory: string, on: QuotaFileSystem, project: number): Promise<void>;
  /** Missing lists are empty. */
  lists(): Promise<ProjectLists>;
  /**
   * Changes the lists while no other process does. Each is replaced in one step, the names first.
   * @param path for which they are changed
   * @param change returns undefined to change nothing
   */
  editLists(path: string, change: (lists: ProjectLists) => Promise<ProjectLists | undefined>): Promise<void>;
}

/** Whether a path can be a word of xfs_quota's commands, and a field of its list of mounts. */
export function isPlainPath(path: string): boolean {
  return path.startsWith("/") && /^[!-~]+$/u.test(path) && !/["'\\]/u.test(path);
}
