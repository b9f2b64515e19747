import type { Compression } from "../ports/compression.ts";
import { FileError, type FileInfo, type Files } from "../ports/files.ts";
import { CriLogDecoder } from "./cri-log.ts";
import { type RotatedLog, rotatedLogs } from "./rotated-names.ts";
import { findTail } from "./tail.ts";

/** What the readers need of the file system. */
export type LogFiles = Pick<Files, "stat" | "readRange" | "list" | "watch">;

/** Where logs are read: files, some of them packed by rotation. */
export interface LogStore {
  readonly files: LogFiles;
  readonly compression: Pick<Compression, "gunzip">;
}

/**
 * What is read at a time, between two looks at a name. Each costs some waits for the file system, whatever is read; and
 * each client that reads slowly holds up to six times as much.
 */
const chunkBytes = 256 * 1024;

export type CursorRead =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  /** The file was emptied under the reader, which starts over. */
  | { readonly kind: "truncated" }
  /** No more bytes now. */
  | { readonly kind: "end" }
  /**
   * No more bytes, and the log goes on in another file ({@link LogCursor.moveOn}). Unless it is complete, the runtime may
   * still be flushing to the one that was just rotated away.
   */
  | { readonly kind: "rotated"; readonly stamp: string; readonly complete: boolean };

/**
 * A place in one instance's log, which is a row of files: rotated ones by their stamps, and the present one. What the
 * cursor holds is the first whose stamp is later than that of the last one it finished, so a file that is renamed or
 * packed while it is read is found again under its new name, at the same place. The port opens by name; each read of the
 * present file is therefore between two looks at the name.
 */
export class LogCursor implements AsyncDisposable {
  readonly #store: LogStore;
  readonly #path: string;
  readonly #directory: string;
  readonly #name: string;
  readonly #reuses: boolean;
  #buffer: Uint8Array | undefined;
  /** Stamp of the last file that was finished; empty: none. */
  #after = "";
  #offset = 0;
  /** The unpacked file being read, as long as it was not packed. */
  #held: FileInfo | undefined;
  /** The last look at the present file, if it was the held one then and showed more than was read. */
  #more: FileInfo | undefined;
  #unpacking: { readonly stamp: string; readonly pieces: AsyncIterator<Uint8Array>; skip: number } | undefined;

  /** @param reuses whether bytes count only until the next are read: garbage of a MiB each is a quarter of the work */
  constructor(store: LogStore, path: string, reuses = false) {
    this.#reuses = reuses;
    this.#store = store;
    this.#path = path;
    const slash = path.lastIndexOf("/");
    this.#directory = path.slice(0, slash);
    this.#name = path.slice(slash + 1);
  }

  /** True when there is any file of this log. */
  async exists(): Promise<boolean> {
    return (await this.#store.files.stat(this.#path)) !== undefined || (await this.#rotated()).length > 0;
  }

  /**
   * Goes to where the last lines begin, in a rotated file when the present one has not enough; returns how many lines to
   * drop from there. Undefined: all lines.
   */
  async seekTail(lines: number | undefined): Promise<number> {
    if (lines === undefined) return 0;
    const { files } = this.#store;
    const rotated = await this.#rotated();
    this.#held = await files.stat(this.#path);
    this.#after = rotated.at(-1)?.stamp ?? "";
    const read = (offset: number, length: number): Promise<Uint8Array> =>
      files.readRange(this.#path, offset, length, { noFollow: true });
    const tail = await findTail(read, this.#held?.size ?? 0, lines);
    this.#offset = tail.offset;
    if (lines <= 0 || tail.offset > 0 || tail.skip > 0) return tail.skip;
    // A line is counted where it ends. One more than wanted, or the first wanted one could have begun a file earlier.
    let missing = lines - tail.found;
    for (const [index, log] of [...rotated.entries()].toReversed()) {
      const count = await this.#countLines(log);
      this.#begin(rotated[index - 1]?.stamp ?? "");
      if (count > missing) return count - missing;
      missing -= count;
    }
    return 0;
  }

  /** Goes on behind the rotated file of this stamp. */
  async moveOn(stamp: string): Promise<void> {
    await this.#endUnpacking();
    this.#begin(stamp);
  }

  async next(): Promise<CursorRead> {
    // Bounded: each turn but the last saw one more rotation between two looks.
    for (let attempt = 0; attempt < 10; attempt++) {
      if (this.#more !== undefined) {
        const more = await this.#readPresent(this.#more);
        if (more !== undefined) return more;
      }
      const rotated = await this.#rotated();
      const log = rotated.find(({ stamp }) => stamp > this.#after);
      const read =
        log === undefined ? await this.#readPresent(undefined) : await this.#readRotated(log, rotated.at(-1) === log);
      if (read !== undefined) return read;
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

  /** Undefined: it was rotated away meanwhile. @param seen the last look at it, if that need not be a new one */
  async #readPresent(seen: FileInfo | undefined): Promise<CursorRead | undefined> {
    const { files } = this.#store;
    this.#more = undefined;
    const info = seen ?? (await files.stat(this.#path));
    if (info === undefined) return { kind: "end" };
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

  /** Undefined: it was packed or removed meanwhile. */
  async #readRotated(log: RotatedLog, isNewest: boolean): Promise<CursorRead | undefined> {
    if (log.packed) return this.#readPacked(log);
    const { files } = this.#store;
    const path = `${this.#directory}/${log.name}`;
    const info = await files.stat(path);
    if (info === undefined) return undefined;
    // The one that was held has been removed: this is the oldest that is left.
    if (this.#held !== undefined && !same(info, this.#held)) this.#offset = 0;
    this.#held = info;
    const bytes = await this.#readPart(path, info.size);
    if (bytes === undefined) return undefined;
    this.#offset += bytes.length;
    if (bytes.length > 0) return { kind: "bytes", bytes };
    // A rotation that failed is undone as long as no new file is there: only then this one is really finished.
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
      // What of a damaged file can't be unpacked must not hide what came after it.
      return error.code === "EINVAL" ? { kind: "rotated", stamp, complete: true } : ignoreMissing(error);
    }
  }

  /** Bytes of a file of that size at the offset; undefined when it is not there any more. */
  async #readPart(path: string, size: number): Promise<Uint8Array | undefined> {
    const length = Math.min(chunkBytes, size - this.#offset);
    if (length <= 0) return new Uint8Array(0);
    const options = { noFollow: true, ...(this.#reuses && { into: this.#bufferOf(length) }) } as const;
    try {
      // A pod that can write to the log's directory must not get files of others shown.
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

function same(a: FileInfo, b: FileInfo): boolean {
  return a.inode === b.inode && a.device === b.device;
}
