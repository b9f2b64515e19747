import type { FileSystemUsage } from "./stats-files.ts";

/** What a path leads to. */
export type PathKind = "directory" | "file" | "socket" | "characterDevice" | "blockDevice" | "other";

/** A file or directory held open by what it is, not by its name: renames and new links no longer matter. */
export interface OpenedPath extends AsyncDisposable {
  /** Names the opened object to a mount call. Valid until the object is disposed of. */
  readonly mountSource: string;
  readonly isDirectory: boolean;
  readonly device: number;
  readonly inode: number;
}

/** An object in a volume. */
export interface OpenedVolumePath extends OpenedPath {
  /** Whether a path, whose links are followed, shows the opened object. */
  isShownAt(path: string): Promise<boolean>;
}

/** Files that storage did not let be changed, as exports with root_squash, immutable files and full disks do. */
export interface GroupRefusal {
  readonly files: number;
  /** Why the first one was not. */
  readonly problem: string;
}

/** How a volume is given to a group (`fsGroup`). */
export interface GroupAccess {
  readonly gid: number;
  /** The group may read only. */
  readonly readOnly: boolean;
  /** Skip everything when the top directory already matches (fsGroupChangePolicy OnRootMismatch). */
  readonly onlyOnRootMismatch: boolean;
  /** Called from time to time with the number of files inspected so far. */
  readonly onProgress?: (files: number) => void;
  /** Called once, at the end, if storage refused to change some files; they stay as they are. */
  readonly onRefusal?: (refusal: GroupRefusal) => void;
  /** The top directory may be a symbolic link, as the source of a mount may. */
  readonly followsTop?: true;
}

/**
 * Work on files that a pod may be changing at the same time: every step goes through open descriptors, and symbolic
 * links never lead out of the volume. Paths are absolute. Every method rejects with FileError, with `ETIMEDOUT` if
 * storage does not respond that is not on the node's own disks; such storage delays no other work.
 */
export interface VolumeFiles {
  /**
   * What exists there, following symbolic links; undefined: nothing.
   * @param options `onlyOnOwnDisks`: rejects with `EREMOTE` if the path leads to storage that may hang
   */
  kind(path: string, options?: { readonly onlyOnOwnDisks?: boolean }): Promise<PathKind | undefined>;
  /** Creates a directory (0755, with its parents) or an empty file (0644); one that exists stays as it is. */
  create(path: string, kind: "directory" | "file"): Promise<void>;
  /** The group of what exists there, following symbolic links. */
  groupOf(path: string): Promise<number>;
  /**
   * Opens a relative path in a volume. Links are followed only within the volume. Missing parts are created:
   * directories with the permissions of the volume's top one.
   * @throws FileError `EXDEV` when the path leaves the volume
   */
  openBeneath(root: string, relativePath: string): Promise<OpenedVolumePath>;
  /**
   * The content of a regular file in a volume, by its relative path; undefined: there is none. Follows links like
   * {@link openBeneath}, and creates nothing.
   * @throws FileError `EXDEV` if the path leads out of the volume, `EINVAL` if it is not a regular file, `EFBIG` if the
   *   file has more than `maxBytes`
   */
  readBeneath(root: string, relativePath: string, maxBytes: number): Promise<Uint8Array | undefined>;
  /**
   * Changes the group of a tree, the top directory last, as the marker of completion. Links get the group themselves,
   * their targets do not; other file systems mounted in the tree are left alone. This delays no other
   * work, however many files there are.
   * @returns the number of changed files
   */
  giveToGroup(root: string, access: GroupAccess, signal?: AbortSignal): Promise<number>;
  /** What the file system at a path holds. */
  usage(path: string, signal?: AbortSignal): Promise<FileSystemUsage>;
}

const setgid = 0o2000;

/** Permissions of something in a volume once it is its group's: `g+rwX`, new files of directories inherit the group. */
export function groupMode(mode: number, isDirectory: boolean, readOnly: boolean): number {
  return mode | (readOnly ? 0o440 : 0o660) | (isDirectory ? 0o110 | setgid : 0);
}

/** Whether a volume's top directory is its group's already. */
export function isGivenToGroup(root: { readonly gid: number; readonly mode: number }, access: GroupAccess): boolean {
  return root.gid === access.gid && groupMode(root.mode, true, access.readOnly) === root.mode;
}
