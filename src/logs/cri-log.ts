/** A line of a container's output, or a piece of one. */
export interface LogLine {
  /** RFC 3339 with nanoseconds as the runtime wrote it; empty for text that is not in CRI's format. */
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** Exactly what the container wrote, without the newline; not necessarily UTF-8. */
  readonly text: Uint8Array;
  /** False: goes on where the stream's piece before it ended. */
  readonly start: boolean;
  /** False: the line is not finished, another piece of the stream follows or the log ends here. */
  readonly end: boolean;
}

/** One raw line of a CRI log file. */
export interface CriLogEntry {
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** Tag `P`: the runtime cut the line here (containerd after 16 KiB), the rest follows in the stream's next entry. */
  readonly partial: boolean;
  readonly text: Uint8Array;
}

export const NEWLINE = 0x0a;
const SPACE = 0x20;
const PARTIAL = 0x50;
const COLON = 0x3a;
/** A longer line is given in pieces, so that what a container writes never decides how much memory its reader needs. */
const MAX_LINE_BYTES = 1 << 20;
const EMPTY = new Uint8Array(0);
const ascii = new TextDecoder("latin1");

/**
 * Reads `<RFC3339Nano> stdout|stderr <tag>[:<tag>…] <text>` (the log format of CRI runtimes, census §5.9). Undefined
 * when the line is something else: torn by a full disk, or not written by a runtime.
 */
export function parseCriLine(line: Uint8Array): CriLogEntry | undefined {
  const afterTime = line.indexOf(SPACE);
  if (afterTime < 20 || afterTime > 40) return undefined;
  const afterStream = line.indexOf(SPACE, afterTime + 1);
  if (afterStream !== afterTime + 7) return undefined;
  const stream = ascii.decode(line.subarray(afterTime + 1, afterStream));
  if (stream !== "stdout" && stream !== "stderr") return undefined;
  const time = ascii.decode(line.subarray(0, afterTime));
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(time)) return undefined;
  let afterTags = line.indexOf(SPACE, afterStream + 1);
  if (afterTags < 0) afterTags = line.length;
  const firstTagEnd = line[afterStream + 2];
  const single = afterTags === afterStream + 2 || firstTagEnd === COLON;
  if (!single) return undefined;
  return {
    time,
    stream,
    partial: line[afterStream + 1] === PARTIAL,
    text: line.subarray(afterTags + 1),
  };
}

interface OpenLine {
  readonly time: string;
  parts: Uint8Array[];
  bytes: number;
  /** A piece of the line was given already. */
  given: boolean;
}

/**
 * Turns the bytes of CRI log files into lines, joining what the runtime cut. Bytes may come in chunks of any size, and
 * a line begun in one file (before a rotation) may end in the next.
 */
export class CriLogDecoder {
  #rest: Uint8Array = EMPTY;
  readonly #open = new Map<CriLogEntry["stream"], OpenLine>();

  push(chunk: Uint8Array): LogLine[] {
    const lines: LogLine[] = [];
    let bytes = this.#rest.length === 0 ? chunk : concat([this.#rest, chunk]);
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
      this.#line(bytes.subarray(0, end), lines);
      bytes = bytes.subarray(end + 1);
    }
    if (bytes.length > MAX_LINE_BYTES) {
      this.#line(bytes, lines);
      bytes = EMPTY;
    }
    this.#rest = bytes.slice();
    return lines;
  }

  /** The file ended here for good (rotation): a raw line without its newline is given as it is. */
  endFile(): LogLine[] {
    const lines: LogLine[] = [];
    if (this.#rest.length > 0) this.#line(this.#rest, lines);
    this.#rest = EMPTY;
    return lines;
  }

  /** The output ended here for good: what was cut and never finished is given as it is. */
  end(): LogLine[] {
    const lines = this.endFile();
    for (const [stream, open] of this.#open) {
      if (open.bytes > 0) lines.push(this.#piece(open, stream, false));
    }
    this.#open.clear();
    return lines;
  }

  /** The file was truncated under the reader: what was begun is forgotten. */
  reset(): void {
    this.#rest = EMPTY;
    this.#open.clear();
  }

  #line(raw: Uint8Array, lines: LogLine[]): void {
    const entry = parseCriLine(raw);
    if (entry === undefined) {
      lines.push({ time: "", stream: "stdout", text: raw.slice(), start: true, end: true });
      return;
    }
    let open = this.#open.get(entry.stream);
    if (open === undefined) {
      open = { time: entry.time, parts: [], bytes: 0, given: false };
      this.#open.set(entry.stream, open);
    }
    open.parts.push(entry.text.slice());
    open.bytes += entry.text.length;
    if (!entry.partial) {
      lines.push(this.#piece(open, entry.stream, true));
      this.#open.delete(entry.stream);
    } else if (open.bytes >= MAX_LINE_BYTES) {
      lines.push(this.#piece(open, entry.stream, false));
      open.parts = [];
      open.bytes = 0;
      open.given = true;
    }
  }

  #piece(open: OpenLine, stream: CriLogEntry["stream"], end: boolean): LogLine {
    return { time: open.time, stream, text: concat(open.parts), start: !open.given, end };
  }
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  if (first === undefined) return EMPTY;
  if (parts.length === 1) return first;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
