/** What a path names, without following a final symbolic link. */
export interface FileInfo {
  readonly type: "file" | "directory" | "symlink" | "other";
  /** Size in bytes. */
  readonly size: number;
  /** Permission bits, e.g. 0o644. */
  readonly mode: number;
  /** Last modification, milliseconds since the epoch. */
  readonly modified: number;
  readonly inode: number;
  readonly device: number;
}

export interface DirectoryEntry {
  readonly name: string;
  readonly type: FileInfo["type"];
}

/** A file system error; `code` is the errno name (`ENOENT`, `ENOSPC` …). */
export class FileError extends Error {
  readonly code: string;
  readonly path: string;
  constructor(code: string, path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "FileError";
    this.code = code;
    this.path = path;
  }
}

export interface ReadOptions {
  /** Rejects with code `ELOOP` when the path's last part is a symbolic link: for files that a pod may have put there. */
  readonly noFollow?: true;
  /** For {@link Files.readRange}: a buffer that may be used instead of a new one; the result is then a view of it. */
  readonly into?: Uint8Array;
}

export interface RemoveTreeOptions {
  /** The caller knows that nothing is mounted there: the table of mounts, which is long on a full node, is not read. */
  readonly isUnmounted?: boolean;
}

/** A file or directory held open by what it is, not by its name: renames and new links no longer matter. */
export interface OpenedObject extends AsyncDisposable {
  readonly type: FileInfo["type"];
  /** Size in bytes when it was opened. */
  readonly size: number;
  /** Of a regular file: up to `length` bytes from `offset`; none at its end. */
  read(offset: number, length: number): Promise<Uint8Array>;
  /** Of a directory, in no particular order. */
  list(): Promise<DirectoryEntry[]>;
}

/** The file system. Paths are absolute. Every method rejects with {@link FileError}. */
export interface Files {
  /** The whole file; rejects with code `EFBIG` when it is longer than `maxBytes`. */
  read(path: string, maxBytes: number): Promise<Uint8Array>;
  /** Up to `length` bytes from `offset`; fewer at the end of the file. */
  readRange(path: string, offset: number, length: number, options?: ReadOptions): Promise<Uint8Array>;
  /**
   * Opens what a relative path names in a directory, to read it. Symbolic links are followed only within the directory,
   * whatever is renamed meanwhile; rejects with code `EXDEV` when the path leads out of it.
   */
  openWithin(directory: string, relativePath: string): Promise<OpenedObject>;
  /** Replaces the file in one step (temporary file, fsync, rename): a reader sees the old or the new text, never a part. */
  writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void>;
  /** Creates or truncates the file in place, so that a bind mount of it sees the change. */
  write(path: string, data: string | Uint8Array, mode: number): Promise<void>;
  /** Appends, creating the file with `mode`. */
  append(path: string, data: string | Uint8Array, mode: number): Promise<void>;
  /** Creates the directory and its parents; an existing directory is left as it is. The mode ignores the umask. */
  makeDirectory(path: string, mode: number): Promise<void>;
  /** Entries in no particular order; empty when the directory does not exist. */
  list(path: string): Promise<DirectoryEntry[]>;
  /** Undefined when nothing is there. Does not follow a final symbolic link. */
  stat(path: string): Promise<FileInfo | undefined>;
  /** Removes one file, symbolic link or empty directory; nothing there is no error. */
  remove(path: string): Promise<void>;
  /**
   * Removes a tree without following links or entering a mount; nothing there is no error. Rejects with code `EBUSY`,
   * before anything is removed, when something is mounted on or below it.
   */
  removeTree(path: string, options?: RemoveTreeOptions): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  symlink(target: string, path: string): Promise<void>;
  readLink(path: string): Promise<string>;
  /** The path with every symbolic link resolved. */
  realPath(path: string): Promise<string>;
  chmod(path: string, mode: number): Promise<void>;
  chown(path: string, uid: number, gid: number): Promise<void>;
  /**
   * Calls `onChange` soon after something in the directory changed (inotify). Only a hint: changes may be merged or
   * missed, so the caller also re-reads periodically. `onError` when watching ended.
   */
  watch(directory: string, onChange: () => void, onError: (error: Error) => void): Disposable;
  /**
   * Like `watch`, and reports names that were deleted or moved away since the last call, whether or not they exist
   * again. A name that another file was renamed onto is not reported.
   */
  watchEntries(
    directory: string,
    onChange: (removed: ReadonlySet<string>) => void,
    onError: (error: Error) => void,
  ): Disposable;
}

/** Does work in a directory that is made only if it is missing: it nearly always exists. */
export async function inDirectory(
  files: Pick<Files, "makeDirectory">,
  directory: string,
  mode: number,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof FileError) || error.code !== "ENOENT") throw error;
    await files.makeDirectory(directory, mode);
    await work();
  }
}

/** Removes a directory that is empty; false: it is not, or something is mounted on it. Nothing there is no error. */
export async function removeEmpty(files: Pick<Files, "remove">, path: string): Promise<boolean> {
  try {
    await files.remove(path);
    return true;
  } catch (error) {
    if (error instanceof FileError && ["ENOTEMPTY", "EEXIST", "EBUSY"].includes(error.code)) return false;
    throw error;
  }
}
