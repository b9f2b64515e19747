import type { Clock } from "../ports/clock.ts";
import { FileError, type FileInfo, type Files } from "../ports/files.ts";
import { CriLogDecoder, type LogLine } from "./cri-log.ts";
import { findTail } from "./tail.ts";

/** What the readers need of the file system. */
export type LogFiles = Pick<Files, "stat" | "readRange" | "list" | "watch">;

const CHUNK_BYTES = 64 * 1024;
/** inotify tells of most changes at once; this finds the rest. */
const POLL_MS = 500;
/** After a log's end was seen and its successor exists, the runtime may still be flushing: look once more after this. */
const SETTLE_MS = 100;

export interface LogRange {
  /** Only the last lines; undefined: all. */
  readonly tailLines?: number;
  /** Only lines for which this is true of their time ({@link LogLine.time}). */
  readonly include?: (time: string) => boolean;
}

export interface FollowOptions extends LogRange {
  /** True when the container will write no more and no other instance of it will start: the follower ends there. */
  readonly ended: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** The lines of one log file up to its present end. Rejects with `FileError` (`ENOENT`) when there is none. */
export async function* readLog(files: LogFiles, path: string, range: LogRange): AsyncGenerator<LogLine> {
  const cursor = new LogCursor(files, path);
  const decoder = new CriLogDecoder();
  const filter = new LineFilter(range.include);
  if ((await files.stat(path)) === undefined) throw new FileError("ENOENT", path, `no log at ${path}`);
  filter.skip = await cursor.seekTail(range.tailLines);
  for (let read = await cursor.next(); read.kind === "bytes"; read = await cursor.next()) {
    yield* filter.apply(decoder.push(read.bytes));
  }
  yield* filter.apply(decoder.end());
}

/**
 * The lines of a container's log as they come: across rotation (the file is renamed and a new one begun) and across
 * restarts of the container (`0.log`, `1.log` … in one directory), each line once. Ends when `ended` says so and all is
 * read, or quietly when the signal aborts. Waits for a log that is not there yet.
 * @param path the newest instance's log, `…/<container>/<restart count>.log`
 */
export async function* followLog(
  files: LogFiles,
  clock: Clock,
  path: string,
  options: FollowOptions,
): AsyncGenerator<LogLine> {
  const directory = path.slice(0, path.lastIndexOf("/"));
  const decoder = new CriLogDecoder();
  const filter = new LineFilter(options.include);
  const waiter = new ChangeWaiter(files, clock, directory);
  using _watch = waiter;
  let cursor = new LogCursor(files, path);
  filter.skip = await cursor.seekTail(options.tailLines);
  let settled = false;
  while (!options.signal.aborted) {
    const read = await cursor.next();
    if (read.kind === "bytes") {
      settled = false;
      yield* filter.apply(decoder.push(read.bytes));
      continue;
    }
    if (read.kind === "truncated") {
      decoder.reset();
      continue;
    }
    // Asked before the successor is looked for: what is written between the two is seen by the next turn.
    const ended = read.kind === "end" && (await options.ended());
    const next = read.kind === "rotated" ? undefined : await cursor.nextInstance();
    const moves = read.kind === "rotated" || next !== undefined || ended;
    if (!moves || !settled) {
      settled = moves;
      await waiter.wait(moves ? SETTLE_MS : POLL_MS, !moves, options.signal);
      continue;
    }
    settled = false;
    if (read.kind === "rotated") {
      yield* filter.apply(decoder.endFile());
      cursor.moveOn(read.to);
    } else {
      yield* filter.apply(decoder.end());
      if (next === undefined) return;
      cursor = new LogCursor(files, next);
    }
  }
}

class LineFilter {
  /** Whole lines still to be dropped. */
  skip = 0;
  readonly #include: ((time: string) => boolean) | undefined;

  constructor(include: ((time: string) => boolean) | undefined) {
    this.#include = include;
  }

  *apply(lines: readonly LogLine[]): Generator<LogLine> {
    for (const line of lines) {
      if (this.skip > 0) {
        if (line.end) this.skip--;
        continue;
      }
      if (this.#include === undefined || line.time === "" || this.#include(line.time)) yield line;
    }
  }
}

interface FileIdentity {
  readonly path: string;
  readonly inode: number;
  readonly device: number;
}

type CursorRead =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | { readonly kind: "truncated" }
  /** No more bytes now. */
  | { readonly kind: "end" }
  /** No more bytes, and the log goes on in another file. */
  | { readonly kind: "rotated"; readonly to: FileIdentity };

/**
 * A place in one instance's log: the file is held by its inode, not its name, so that the end of a file that was
 * renamed by a rotation is still read. The port opens by name, so each read is between two looks at the name.
 */
class LogCursor {
  readonly #files: LogFiles;
  readonly #path: string;
  readonly #directory: string;
  readonly #name: string;
  #file: FileIdentity | undefined;
  #offset = 0;

  constructor(files: LogFiles, path: string) {
    this.#files = files;
    this.#path = path;
    const slash = path.lastIndexOf("/");
    this.#directory = path.slice(0, slash);
    this.#name = path.slice(slash + 1);
  }

  /** Goes to where the last lines begin; returns how many lines to drop from there. */
  async seekTail(lines: number | undefined): Promise<number> {
    if (lines === undefined) return 0;
    const info = await this.#files.stat(this.#path);
    if (info === undefined) return 0;
    const tail = await findTail(
      (offset, length) => this.#files.readRange(this.#path, offset, length),
      info.size,
      lines,
    );
    this.#file = identity(this.#path, info);
    this.#offset = tail.offset;
    return tail.skip;
  }

  moveOn(to: FileIdentity): void {
    this.#file = to;
    this.#offset = 0;
  }

  async next(): Promise<CursorRead> {
    // Bounded: each turn but the last saw one more rotation between two looks.
    for (let attempt = 0; attempt < 10; attempt++) {
      const present = await this.#locate();
      if (present === undefined) return { kind: "end" };
      if (present.info.size < this.#offset) {
        this.#offset = 0;
        return { kind: "truncated" };
      }
      const bytes = await this.#read(present.file);
      if (bytes === undefined) continue;
      this.#offset += bytes.length;
      if (bytes.length > 0) return { kind: "bytes", bytes };
      const to = present.file.path === this.#path ? undefined : await this.#successor(present.file.path);
      return to === undefined ? { kind: "end" } : { kind: "rotated", to };
    }
    return { kind: "end" };
  }

  /** Bytes at the offset; undefined when the name stood for another file before or after. */
  async #read(file: FileIdentity): Promise<Uint8Array | undefined> {
    try {
      const bytes = await this.#files.readRange(file.path, this.#offset, CHUNK_BYTES);
      const after = await this.#files.stat(file.path);
      return after !== undefined && same(after, file) ? bytes : undefined;
    } catch (error) {
      if (error instanceof FileError && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** The file held, under its present name. */
  async #locate(): Promise<{ readonly file: FileIdentity; readonly info: FileInfo } | undefined> {
    const info = await this.#files.stat(this.#path);
    const held = this.#file;
    if (info !== undefined && (held === undefined || same(info, held))) {
      const file = identity(this.#path, info);
      this.#file = file;
      return { file, info };
    }
    if (held === undefined) return undefined;
    for (const name of await this.#rotated()) {
      const path = `${this.#directory}/${name}`;
      const rotated = await this.#files.stat(path);
      if (rotated !== undefined && same(rotated, held)) {
        const file = identity(path, rotated);
        this.#file = file;
        return { file, info: rotated };
      }
    }
    // Compressed or removed while it was read: what it still held is lost, the present file is what is left.
    if (info === undefined) return undefined;
    this.moveOn(identity(this.#path, info));
    return { file: identity(this.#path, info), info };
  }

  /** Names that rotation gave to this log's earlier files, oldest first (`0.log.20261120-140211`). */
  async #rotated(): Promise<string[]> {
    const entries = await this.#files.list(this.#directory);
    const names = entries.map((entry) => entry.name);
    const rotated = names.filter((name) => name.startsWith(`${this.#name}.`) && !/\.(gz|tmp)$/.test(name));
    return rotated.toSorted();
  }

  /** The file that was begun when the one under this rotated name was renamed. */
  async #successor(path: string): Promise<FileIdentity | undefined> {
    const name = path.slice(this.#directory.length + 1);
    const later = (await this.#rotated()).find((candidate) => candidate > name);
    const next = later === undefined ? this.#path : `${this.#directory}/${later}`;
    const info = await this.#files.stat(next);
    return info === undefined ? undefined : identity(next, info);
  }

  /** The log of the container's next instance that has one. */
  async nextInstance(): Promise<string | undefined> {
    const own = instanceOf(this.#name);
    if (own === undefined) return undefined;
    const entries = await this.#files.list(this.#directory);
    const later = entries.map((entry) => instanceOf(entry.name) ?? -1).filter((instance) => instance > own);
    return later.length === 0 ? undefined : `${this.#directory}/${Math.min(...later)}.log`;
  }
}

function instanceOf(name: string): number | undefined {
  const match = /^(\d+)\.log$/.exec(name);
  return match === null ? undefined : Number(match[1]);
}

function identity(path: string, info: FileInfo): FileIdentity {
  return { path, inode: info.inode, device: info.device };
}

function same(info: FileInfo, file: FileIdentity): boolean {
  return info.inode === file.inode && info.device === file.device;
}

/** Waits for a change in a directory, or for a time. */
class ChangeWaiter implements Disposable {
  readonly #files: LogFiles;
  readonly #clock: Clock;
  readonly #directory: string;
  #watch: Disposable | undefined;
  #changed = false;
  #wake: (() => void) | undefined;

  constructor(files: LogFiles, clock: Clock, directory: string) {
    this.#files = files;
    this.#clock = clock;
    this.#directory = directory;
  }

  /** @param wakeable whether a change ends the wait */
  async wait(limitMs: number, wakeable: boolean, signal: AbortSignal): Promise<void> {
    this.#startWatch();
    if (wakeable && this.#changed) {
      this.#changed = false;
      return;
    }
    const woken = new AbortController();
    if (wakeable) this.#wake = () => woken.abort();
    await this.#clock.sleep("next look at a log", limitMs, AbortSignal.any([woken.signal, signal])).catch(() => {});
    this.#wake = undefined;
    this.#changed = false;
  }

  #startWatch(): void {
    if (this.#watch !== undefined) return;
    const lost = (): void => {
      this.#watch = undefined;
    };
    try {
      this.#watch = this.#files.watch(this.#directory, () => this.#onChange(), lost);
    } catch {
      // The directory is not there yet: polling finds it, and the next wait tries again.
    }
  }

  #onChange(): void {
    this.#changed = true;
    this.#wake?.();
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
  }
}
