import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import { ChangeWaiter } from "./change-waiter.ts";
import type { LogLine } from "./cri-log.ts";
import { type CursorRead, LogCursor, type LogStore } from "./cursor.ts";
import { type Decoding, LineDecoding, TextDecoding, type TextOptions, type TimeFilter } from "./decoding.ts";

export type { LogFiles, LogStore } from "./cursor.ts";

/** inotify reports most changes immediately; this catches the rest. */
const POLL_MS = 500;
/** After the end of a log with a successor, the runtime may still be flushing: check once more after this. */
const SETTLE_MS = 100;

export interface LogRange {
  /** Only the last lines; undefined: all. */
  readonly tailLines?: number;
  /** Only lines whose time ({@link LogLine.time}) satisfies this. */
  readonly include?: TimeFilter;
}

/** How a growing log is followed. */
export interface Following {
  /** True when the container will write no more and no other instance of it will start: the follower ends there. */
  readonly ended: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface FollowOptions extends LogRange, Following {}

/** The same for a log's text. */
export interface TextRange extends TextOptions {
  /** Only the last lines; undefined: all. */
  readonly tailLines: number | undefined;
}

/**
 * The lines of one instance's log up to its current end, including rotated and compressed files. Rejects with
 * `FileError` (`ENOENT`) when there is none, or it is removed while it is read.
 */
export async function* readLog(store: LogStore, path: string, range: LogRange): AsyncGenerator<LogLine> {
  const pieces = readPieces(store, path, range.tailLines, new LineDecoding(range.include));
  for await (const lines of pieces) yield* lines;
}

/** {@link readLog} as the container's text, in chunks of some hundred KiB. */
export async function* readLogText(store: LogStore, path: string, range: TextRange): AsyncGenerator<Uint8Array> {
  yield* readPieces(store, path, range.tailLines, new TextDecoding(range));
}

/**
 * The lines of a container's log as they arrive: across rotation (the file is renamed and a new one created, older ones
 * are compressed) and across restarts of the container (`0.log`, `1.log` … in one directory), each line once. Ends when
 * `ended` returns true and everything is read, or quietly when the signal aborts. Waits for a log that does not exist
 * yet.
 * @param path the newest instance's log, `…/<container>/<restart count>.log`
 */
export async function* followLog(
  store: LogStore,
  clock: Clock,
  path: string,
  options: FollowOptions,
): AsyncGenerator<LogLine> {
  const { tailLines, include } = options;
  const decoding = (): LineDecoding => new LineDecoding(include);
  for await (const lines of followPieces({ store, clock }, path, tailLines, decoding, options)) yield* lines;
}

/** {@link followLog} as text. */
export async function* followLogText(
  store: LogStore,
  clock: Clock,
  path: string,
  options: TextRange & Following,
): AsyncGenerator<Uint8Array> {
  yield* followPieces({ store, clock }, path, options.tailLines, () => new TextDecoding(options), options);
}

async function* readPieces<T>(
  store: LogStore,
  path: string,
  tailLines: number | undefined,
  decoding: Decoding<T>,
): AsyncGenerator<T> {
  await using cursor = new LogCursor(store, path, decoding.copies);
  if (!(await cursor.exists())) throw new FileError("ENOENT", path, `no log at ${path}`);
  decoding.skip = await cursor.seekTail(tailLines);
  for (;;) {
    const piece = await readOn(cursor, decoding);
    if (piece === undefined) break;
    yield piece;
  }
  if (await cursor.isLost()) throw new FileError("ENOENT", path, `the log ${path} was removed while it was read`);
  yield decoding.end();
}

async function* followPieces<T>(
  { store, clock }: { readonly store: LogStore; readonly clock: Clock },
  path: string,
  tailLines: number | undefined,
  decoding: () => Decoding<T>,
  following: Following,
): AsyncGenerator<T> {
  using waiter = new ChangeWaiter(store.files, clock, path.slice(0, path.lastIndexOf("/")));
  let tail = tailLines;
  for (let next: string | undefined = path; next !== undefined && !following.signal.aborted; tail = undefined) {
    const instance = decoding();
    await using cursor = new LogCursor(store, next, instance.copies);
    instance.skip = await cursor.seekTail(tail);
    next = yield* followInstance(cursor, instance, waiter, following);
  }
}

/** One instance's log as it arrives; returns the next instance's log, or undefined at the end of all. */
async function* followInstance<T>(
  cursor: LogCursor,
  decoding: Decoding<T>,
  waiter: ChangeWaiter,
  following: Following,
): AsyncGenerator<T, string | undefined> {
  let settled = false;
  let waited = false;
  while (!following.signal.aborted) {
    const read = await cursor.next();
    if (read.kind === "bytes" || read.kind === "truncated") {
      settled = false;
      waited = false;
      yield await take(cursor, decoding, read);
      continue;
    }
    // Asked before looking for the successor: what is written between the two is seen in the next iteration.
    const ended = read.kind === "end" && (await following.ended());
    const next = read.kind === "rotated" ? undefined : await cursor.nextInstance();
    const moves = read.kind === "rotated" || next !== undefined || ended;
    if (!moves || !(settled || (read.kind === "rotated" && read.complete))) {
      settled = moves;
      // The last output of a container that waits for its restart need not end a line.
      if (waited) yield decoding.pause();
      waited = true;
      await waiter.wait(moves ? SETTLE_MS : POLL_MS, !moves, following.signal);
      continue;
    }
    settled = false;
    yield read.kind === "rotated" ? await take(cursor, decoding, read) : decoding.end();
    if (read.kind === "end") return next;
  }
  return undefined;
}

/** In its own stack frame, so that the input can be freed while a slow consumer takes the result. */
async function readOn<T>(cursor: LogCursor, decoding: Decoding<T>): Promise<T | undefined> {
  const read = await cursor.next();
  return read.kind === "end" ? undefined : await take(cursor, decoding, read);
}

/** Takes the bytes read, and moves to the next file at the end of one. */
async function take<T>(
  cursor: LogCursor,
  decoding: Decoding<T>,
  read: Exclude<CursorRead, { readonly kind: "end" }>,
): Promise<T> {
  switch (read.kind) {
    case "bytes":
      return decoding.push(read.bytes);
    case "truncated":
      return decoding.reset();
    case "rotated":
      await cursor.moveOn(read.stamp);
      return decoding.endFile();
  }
}
