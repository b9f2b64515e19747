import type { Compression } from "../ports/compression.ts";
import { FileError, type FileInfo, type Files } from "../ports/files.ts";
import { CriLogDecoder } from "./cri-log.ts";
import { type RotatedLog, rotatedLogs } from "./rotated-names.ts";
import { findTail, type TailStart } from "./tail.ts";

/** The file system operations for readers. */
export type LogFiles = Pick<Files, "stat" | "readRange" | "list" | "watch">;

/** Where logs are read: files, some compressed by rotation. */
export interface LogStore {
  readonly files: LogFiles;
  readonly compression: Pick<Compression, "gunzip">;
}

/**
 * Bytes per read, between two stats of a name. A smaller size costs more file system round trips; a slow client holds
 * up to six times as much.
 */
const chunkBytes = 256 * 1024;

export type CursorRead =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** The file was truncated while being read, and reading starts over. */
  | { readonly kind: "truncated" }
  /** No more bytes for now. */
  | { readonly kind: "end" }
  /**
   * No more bytes, and the log continues in another file ({@link LogCursor.moveOn}). Unless it is complete, the runtime
   * may still be flushing to the rotated one.
   */
  | { readonly kind: "rotated"; readonly stamp: string; readonly complete: boolean };

/**
 * A position in one instance's log, which is a sequence of files: rotated ones by their stamps, and the current one.
 * The cursor's file is the first whose stamp is later than the last finished one, so a file that is renamed or
 * compressed while being read is found again under its new name, at the same position. Files are opened by name; each
 * read of the current file is therefore between two stats of the name.
 */
export class LogCursor implements AsyncDisposable {
  readonly #store: LogStore;
  readonly #path: string;
  readonly #directory: string;
  readonly #name: string;
  readonly #reuses: boolean;
  #buffer: Uint8Array | undefined;
  /** Stamp of the last finished file; empty: none. */
  #after = "";
  #offset = 0;
  /** The uncompressed file being read, while it is not compressed. */
  #held: FileInfo | undefined;
  /** The last stat of the current file, if it was the cursor's file and had more than was read. */
  #more: FileInfo | undefined;
  #isRead = false;
  #isCutShort = false;
  #unpacking: { readonly stamp: string; readonly pieces: AsyncIterator<Uint8Array>; skip: number } | undefined;

  /** @param reuses whether bytes are valid only until the next read: avoids garbage of a MiB each */
  constructor(store: LogStore, path: string, reuses = false) {
    this.#reuses = reuses;
    this.#store = store;
    this.#path = path;
    const slash = path.lastIndexOf("/");
    this.#directory = path.slice(0, slash);
    this.#name = path.slice(slash + 1);
  }

  /** True when the log was removed before all of it was read: its end is not that of the log. */
  async isLost(): Promise<boolean> {
    return this.#isCutShort || (!this.#isRead && !(await this.exists()));
  }

  /** True when any file of this log exists. */
  async exists(): Promise<boolean> {
    return (await this.#store.files.stat(this.#path)) !== undefined || (await this.#rotated()).length > 0;
  }

  /**
   * Seeks to the start of the last lines, in a rotated file if the current one has too few; returns how many lines to
   * drop from there. Undefined: all lines.
   */
  async seekTail(lines: number | undefined): Promise<number> {
    if (lines === undefined) return 0;
    const { rotated, tail } = await this.#seekInPresent(lines);
    if (lines <= 0 || tail.offset > 0 || tail.skip > 0) return tail.skip;
    // A line counts where it ends. Reading one more line than wanted ensures that the first wanted one did not begin in
    // an earlier file.
    let missing = lines - tail.found;
    for (const [index, log] of [...rotated.entries()].toReversed()) {
      const count = await this.#countLines(log);
      this.#begin(rotated[index - 1]?.stamp ?? "");
      if (count > missing) return count - missing;
      missing -= count;
    }
    return 0;
  }

  /** Seeks in the current file, and tells which rotated ones precede it. */
  async #seekInPresent(lines: number): Promise<{ readonly rotated: RotatedLog[]; readonly tail: TailStart }> {
    const { files } = this.#store;
    let rotated = await this.#rotated();
    // Bounded: each iteration but the last saw another rotation. An offset in one file is none in the other.
    for (let attempt = 1; ; attempt++) {
      const present = await files.stat(this.#path);
      const tail = await findTail((at, length) => this.#readAt(at, length), present?.size ?? 0, lines);
      this.#begin(newestOf(rotated));
      this.#held = present;
      this.#offset = tail.offset;
      const later = await this.#rotated();
      const isPresent = isSameFile(present, await files.stat(this.#path)) && newestOf(later) === newestOf(rotated);
      if (isPresent || attempt === 10) return { rotated, tail };
      rotated = later;
    }
  }

  /** Nothing when the file is gone. */
  async #readAt(offset: number, length: number): Promise<Uint8Array> {
    try {
      return await this.#store.files.readRange(this.#path, offset, length, { noFollow: true });
    } catch (error) {
      return ignoreMissing(error) ?? new Uint8Array(0);
    }
  }

  /** Continues after the rotated file of this stamp. */
  async moveOn(stamp: string): Promise<void> {
    await this.#endUnpacking();
    this.#begin(stamp);
  }

  async next(): Promise<CursorRead> {
    // Bounded: each iteration but the last saw another rotation between two stats.
    for (let attempt = 0; attempt < 10; attempt++) {
      if (this.#more !== undefined) {
        const more = await this.#readPresent(this.#more);
        if (more !== undefined) return more;
      }
      const rotated = await this.#rotated();
      const log = rotated.find(({ stamp }) => stamp > this.#after);
      const read =
        log === undefined ? await this.#readPresent(undefined) : await this.#readRotated(log, rotated.at(-1) === log);
      if (read === undefined) continue;
      this.#isRead ||= read.kind === "bytes";
      return read;
    }
    return { kind: "end" };
  }

  /** The log of the container's next instance that has one. */
  async nextInstance(): Promise<string | undefined> {
    const own = instanceOf(this.#name);
    if (own === undefined) return undefined;
    const entries = await this.#store.files.list(this.#directory);
    const later = entries.map((entry) => instanceOf(entry.name) ?? -1).filter((instance) => instance > own);
    return later.length === 0 ? undefined : `${this.#directory}/${Math.min(...later)}.log`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endUnpacking();
  }

  #begin(after: string): void {
    this.#after = after;
    this.#offset = 0;
    this.#held = undefined;
    this.#more = undefined;
  }

  /** Undefined: rotated away meanwhile. @param seen the last stat, if recent enough */
  async #readPresent(seen: FileInfo | undefined): Promise<CursorRead | undefined> {
    const { files } = this.#store;
    this.#more = undefined;
    const info = seen ?? (await files.stat(this.#path));
    if (info === undefined) {
      if (await this.#rotatedSince()) return undefined;
      this.#isCutShort = this.#held !== undefined && this.#held.size > this.#offset;
      return { kind: "end" };
    }
    if (this.#held !== undefined && !same(info, this.#held)) {
      if (await this.#rotatedSince()) return undefined;
      this.#begin(this.#after);
      this.#held = info;
      return { kind: "truncated" };
    }
    if (info.size < this.#offset) {
      this.#offset = 0;
      return { kind: "truncated" };
    }
    const bytes = await this.#readPart(this.#path, info.size);
    const after = await files.stat(this.#path);
    if (bytes === undefined || after === undefined || !same(after, info)) return undefined;
    this.#held = info;
    this.#offset += bytes.length;
    if (bytes.length > 0 && after.size > this.#offset) this.#more = after;
    return bytes.length > 0 ? { kind: "bytes", bytes } : { kind: "end" };
  }

  /** Undefined: compressed or removed meanwhile. */
  async #readRotated(log: RotatedLog, isNewest: boolean): Promise<CursorRead | undefined> {
    if (log.packed) return this.#readPacked(log);
    const { files } = this.#store;
    const path = `${this.#directory}/${log.name}`;
    const info = await files.stat(path);
    if (info === undefined) return undefined;
    // The cursor's file was removed: this is the oldest remaining.
    if (this.#held !== undefined && !same(info, this.#held)) this.#offset = 0;
    this.#held = info;
    const bytes = await this.#readPart(path, info.size);
    if (bytes === undefined) return undefined;
    this.#offset += bytes.length;
    if (bytes.length > 0) return { kind: "bytes", bytes };
    // A failed rotation is undone as long as there is no new file: only then this one is really finished.
    if (isNewest && (await files.stat(this.#path)) === undefined) return { kind: "end" };
    return { kind: "rotated", stamp: log.stamp, complete: !isNewest };
  }

  async #readPacked({ name, stamp }: RotatedLog): Promise<CursorRead | undefined> {
    if (this.#unpacking?.stamp !== stamp) {
      await this.#endUnpacking();
      const pieces = this.#store.compression.gunzip(`${this.#directory}/${name}`)[Symbol.asyncIterator]();
      this.#unpacking = { stamp, pieces, skip: this.#offset };
    }
    const unpacking = this.#unpacking;
    try {
      for (;;) {
        const next: IteratorResult<Uint8Array, unknown> = await unpacking.pieces.next();
        if (next.done === true) return { kind: "rotated", stamp, complete: true };
        const bytes = next.value.subarray(unpacking.skip);
        unpacking.skip -= next.value.length - bytes.length;
        this.#offset += bytes.length;
        if (bytes.length > 0) return { kind: "bytes", bytes };
      }
    } catch (error) {
      this.#unpacking = undefined;
      if (!(error instanceof FileError)) throw error;
      // The unreadable rest of a damaged file must not hide what came after it.
      return error.code === "EINVAL" ? { kind: "rotated", stamp, complete: true } : ignoreMissing(error);
    }
  }

  /** Bytes of a file of that size at the offset; undefined when it is gone. */
  async #readPart(path: string, size: number): Promise<Uint8Array | undefined> {
    const length = Math.min(chunkBytes, size - this.#offset);
    if (length <= 0) return new Uint8Array(0);
    const options = { noFollow: true, ...(this.#reuses && { into: this.#bufferOf(length) }) } as const;
    try {
      // A pod with write access to the log directory must not get other files shown.
      return await this.#store.files.readRange(path, this.#offset, length, options);
    } catch (error) {
      return ignoreMissing(error);
    }
  }

  #bufferOf(length: number): Uint8Array {
    if (this.#buffer === undefined || this.#buffer.length < length) this.#buffer = new Uint8Array(length);
    return this.#buffer;
  }

  async #countLines(log: RotatedLog): Promise<number> {
    await using file = new LogCursor(this.#store, this.#path, true);
    let count = 0;
    const decoder = new CriLogDecoder({
      whole: () => void count++,
      piece: ({ end }) => void (count += end ? 1 : 0),
    });
    for (;;) {
      const read = await file.#readRotated(log, false);
      if (read?.kind !== "bytes") return count;
      decoder.push(read.bytes);
    }
  }

  async #rotated(): Promise<RotatedLog[]> {
    const entries = await this.#store.files.list(this.#directory);
    return rotatedLogs(
      entries.map((entry) => entry.name),
      this.#name,
    );
  }

  async #rotatedSince(): Promise<boolean> {
    return (await this.#rotated()).some(({ stamp }) => stamp > this.#after);
  }

  async #endUnpacking(): Promise<void> {
    const unpacking = this.#unpacking;
    this.#unpacking = undefined;
    await unpacking?.pieces.return?.();
  }
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof FileError) || error.code !== "ENOENT") throw error;
}

function instanceOf(name: string): number | undefined {
  const match = /^(\d+)\.log$/.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** Empty: none. */
function newestOf(rotated: readonly RotatedLog[]): string {
  return rotated.at(-1)?.stamp ?? "";
}

/** Also when there is none. */
function isSameFile(a: FileInfo | undefined, b: FileInfo | undefined): boolean {
  return a === undefined || b === undefined ? a === b : same(a, b);
}

function same(a: FileInfo, b: FileInfo): boolean {
  return a.inode === b.inode && a.device === b.device;
}
