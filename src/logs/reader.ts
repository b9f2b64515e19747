import type { Clock } from "../ports/clock.ts";
import { FileError } from "../ports/files.ts";
import { ChangeWaiter } from "./change-waiter.ts";
import { CriLogDecoder, type LogLine } from "./cri-log.ts";
import { type CursorRead, LogCursor, type LogStore } from "./cursor.ts";

export type { LogFiles, LogStore } from "./cursor.ts";

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

/**
 * The lines of one instance's log up to its present end, those that rotation moved to other files or packed included.
 * Rejects with `FileError` (`ENOENT`) when there is none.
 */
export async function* readLog(store: LogStore, path: string, range: LogRange): AsyncGenerator<LogLine> {
  await using cursor = new LogCursor(store, path);
  const decoder = new CriLogDecoder();
  const filter = new LineFilter(range.include);
  if (!(await cursor.exists())) throw new FileError("ENOENT", path, `no log at ${path}`);
  filter.skip = await cursor.seekTail(range.tailLines);
  for (let read = await cursor.next(); read.kind !== "end"; read = await cursor.next()) {
    yield* filter.apply(await take(cursor, decoder, read));
  }
  yield* filter.apply(decoder.end());
}

/**
 * The lines of a container's log as they come: across rotation (the file is renamed and a new one begun, older ones are
 * packed) and across restarts of the container (`0.log`, `1.log` … in one directory), each line once. Ends when `ended`
 * says so and all is read, or quietly when the signal aborts. Waits for a log that is not there yet.
 * @param path the newest instance's log, `…/<container>/<restart count>.log`
 */
export async function* followLog(
  store: LogStore,
  clock: Clock,
  path: string,
  options: FollowOptions,
): AsyncGenerator<LogLine> {
  using waiter = new ChangeWaiter(store.files, clock, path.slice(0, path.lastIndexOf("/")));
  let { tailLines } = options;
  for (let next: string | undefined = path; next !== undefined && !options.signal.aborted; tailLines = undefined) {
    next = yield* followInstance(store, next, waiter, { ...options, tailLines });
  }
}

/** The lines of one instance's log as they come; returns the next instance's log, or undefined at the end of all. */
async function* followInstance(
  store: LogStore,
  path: string,
  waiter: ChangeWaiter,
  options: Omit<FollowOptions, "tailLines"> & { readonly tailLines: number | undefined },
): AsyncGenerator<LogLine, string | undefined> {
  await using cursor = new LogCursor(store, path);
  const decoder = new CriLogDecoder();
  const filter = new LineFilter(options.include);
  filter.skip = await cursor.seekTail(options.tailLines);
  let settled = false;
  while (!options.signal.aborted) {
    const read = await cursor.next();
    if (read.kind === "bytes" || read.kind === "truncated") {
      settled = false;
      yield* filter.apply(await take(cursor, decoder, read));
      continue;
    }
    // Asked before the successor is looked for: what is written between the two is seen by the next turn.
    const ended = read.kind === "end" && (await options.ended());
    const next = read.kind === "rotated" ? undefined : await cursor.nextInstance();
    const moves = read.kind === "rotated" || next !== undefined || ended;
    if (!moves || !(settled || (read.kind === "rotated" && read.complete))) {
      settled = moves;
      await waiter.wait(moves ? SETTLE_MS : POLL_MS, !moves, options.signal);
      continue;
    }
    settled = false;
    yield* filter.apply(read.kind === "rotated" ? await take(cursor, decoder, read) : decoder.end());
    if (read.kind === "end") return next;
  }
  return undefined;
}

/** Takes what was read, and goes on to the next file at the end of one. */
async function take(cursor: LogCursor, decoder: CriLogDecoder, read: CursorRead): Promise<LogLine[]> {
  switch (read.kind) {
    case "bytes":
      return decoder.push(read.bytes);
    case "truncated":
      decoder.reset();
      return [];
    case "rotated":
      await cursor.moveOn(read.stamp);
      return decoder.endFile();
    case "end":
      return [];
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
