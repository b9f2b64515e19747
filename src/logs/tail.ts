import { NEWLINE, parseCriLine } from "./cri-line.ts";

const BLOCK_BYTES = 64 * 1024;
/** Pieces of one line are close to each other: a piece further back than this is not searched for. */
const MAX_GAP_BYTES = 256 * 1024;
/** A longer raw line is not a runtime's (they split at 16 KiB). */
const MAX_RAW_LINE_BYTES = 4 << 20;

/** Where the last lines of a log begin. */
export interface TailStart {
  /** Byte offset of the first needed raw line. */
  readonly offset: number;
  /** Lines of the other stream that end after `offset`: the reader skips this many. */
  readonly skip: number;
  /** Wanted lines in the file: fewer than requested when it begins too late. */
  readonly found: number;
}

/**
 * Counts lines backwards. A split line consists of several raw lines, interleaved with the other stream's: a wanted
 * line's pieces are followed back to its first.
 */
class TailScanner {
  readonly #wanted: number;
  found = 0;
  skip = 0;
  /** Streams whose earliest wanted line may begin further back, with the bytes since its last piece. */
  readonly #open = new Map<string, number>();
  readonly #seen = new Set<string>();

  constructor(wanted: number) {
    this.#wanted = wanted;
  }

  /** Takes the raw line before the one taken last; false: neither it nor anything before it is needed. */
  take(raw: Uint8Array): boolean {
    const entry = parseCriLine(raw);
    if (entry === undefined) return this.#lineEnd(undefined, raw.length);
    const unfinished = entry.partial && !this.#seen.has(entry.stream);
    this.#seen.add(entry.stream);
    if (!entry.partial || unfinished) return this.#lineEnd(entry.stream, raw.length);
    if (this.#open.has(entry.stream)) this.#open.set(entry.stream, 0);
    this.#age(raw.length, entry.stream);
    return this.#needed;
  }

  get #needed(): boolean {
    return this.found < this.#wanted || this.#open.size > 0;
  }

  #lineEnd(stream: string | undefined, bytes: number): boolean {
    if (stream !== undefined) this.#open.delete(stream);
    this.#age(bytes, stream);
    if (!this.#needed) return false;
    if (this.found >= this.#wanted) {
      this.skip++;
      return true;
    }
    this.found++;
    if (stream !== undefined) this.#open.set(stream, 0);
    return true;
  }

  #age(bytes: number, except: string | undefined): void {
    for (const [stream, gap] of this.#open) {
      if (stream === except) continue;
      if (gap + bytes > MAX_GAP_BYTES) this.#open.delete(stream);
      else this.#open.set(stream, gap + bytes);
    }
  }
}

/**
 * Finds the last `wanted` lines of a file of `size` bytes by reading blocks from its end.
 * @param read up to `length` bytes from `offset`
 */
export async function findTail(
  read: (offset: number, length: number) => Promise<Uint8Array>,
  size: number,
  wanted: number,
): Promise<TailStart> {
  if (wanted <= 0) return { offset: size, skip: 0, found: 0 };
  const scanner = new TailScanner(wanted);
  /** Bytes from `position` on whose lines were not taken yet. */
  let pending: Uint8Array = new Uint8Array(0);
  let position = size;
  let start = size;
  while (position > 0 && pending.length < MAX_RAW_LINE_BYTES) {
    const length = Math.min(BLOCK_BYTES, position);
    const block = await read(position - length, length);
    position -= length;
    if (block.length < length) return { offset: 0, skip: 0, found: wanted };
    const bytes = new Uint8Array(length + pending.length);
    bytes.set(block);
    bytes.set(pending, length);
    // The last byte taken is the newline before `start`, except at the very end of a torn file.
    let end = bytes.length;
    while (end > 0) {
      const textEnd = bytes[end - 1] === NEWLINE ? end - 1 : end;
      const newline = textEnd === 0 ? -1 : bytes.lastIndexOf(NEWLINE, textEnd - 1);
      if (newline < 0 && position > 0) break;
      const needed = scanner.take(bytes.subarray(newline + 1, textEnd));
      if (!needed) return { offset: start, skip: scanner.skip, found: scanner.found };
      start = position + newline + 1;
      end = newline + 1;
    }
    pending = bytes.slice(0, end);
  }
  return { offset: start, skip: scanner.skip, found: scanner.found };
}
