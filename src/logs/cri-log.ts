import { asBuffer, type CriLineParts, emptyParts, findCriParts, latin1, type LogStream, NEWLINE } from "./cri-line.ts";

/** A line of a container's output, or a piece of one. */
export interface LogLine {
  /** RFC 3339 with nanoseconds as written by the runtime; empty for text in another format. */
  readonly time: string;
  readonly stream: LogStream;
  /** Exactly what the container wrote, without the newline; not necessarily UTF-8. */
  readonly text: Uint8Array;
  /** False: continues the stream's previous piece. */
  readonly start: boolean;
  /** False: incomplete; another piece of the stream follows, or the log ends here. */
  readonly end: boolean;
}

/** Receives decoded lines. */
export interface LineSink {
  /**
   * A complete unsplit line of CRI's format, from `begin` to `end` of the bytes. Valid only during the call: the parts
   * object is reused.
   */
  whole(bytes: Buffer, begin: number, end: number, parts: Readonly<CriLineParts>): void;
  /** Any other line, or a piece of one. */
  piece(line: LogLine): void;
}

/** Longer lines are passed in pieces, which bounds the reader's memory. */
const MAX_LINE_BYTES = 1 << 20;
const EMPTY = new Uint8Array(0);

interface OpenLine {
  readonly time: string;
  parts: Uint8Array[];
  bytes: number;
  /** A piece of the line was already passed. */
  given: boolean;
}

/** A raw line of which a part was passed before its newline was read. */
interface CutLine {
  readonly open: OpenLine;
  readonly stream: LogStream;
  /** As in {@link CriLineParts}. */
  readonly partial: boolean;
}

/**
 * Turns the bytes of CRI log files into lines, joining split ones. Bytes may come in chunks of any size, and a line
 * begun in one file (before a rotation) may end in the next.
 */
export class CriLogDecoder {
  readonly #sink: LineSink;
  #rest: Uint8Array = EMPTY;
  readonly #open = new Map<LogStream, OpenLine>();
  /** The next bytes belong to it: only its first ones had a prefix. */
  #cut: CutLine | undefined;
  readonly #parts = emptyParts();

  constructor(sink: LineSink) {
    this.#sink = sink;
  }

  push(chunk: Uint8Array): void {
    let bytes = asBuffer(chunk);
    let begin = this.#cut === undefined ? 0 : this.#goOn(this.#cut, bytes, 0);
    if (this.#rest.length > 0) {
      // Only the pending line is assembled: the rest is not copied.
      const end = bytes.indexOf(NEWLINE);
      begin = end < 0 ? bytes.length : end + 1;
      const line = asBuffer(concat([this.#rest, bytes.subarray(0, begin)]));
      this.#rest = EMPTY;
      if (end < 0) [bytes, begin] = [line, 0];
      else this.#line(line, 0, line.length - 1);
    }
    for (let end = bytes.indexOf(NEWLINE, begin); end >= 0; end = bytes.indexOf(NEWLINE, begin)) {
      this.#line(bytes, begin, end);
      begin = end + 1;
    }
    if (bytes.length - begin > MAX_LINE_BYTES) begin = this.#cutOff(bytes, begin);
    this.#rest = new Uint8Array(bytes.subarray(begin));
  }

  /** The file ended for good (rotation): a raw line without its newline is passed as it is. */
  endFile(): void {
    if (this.#rest.length > 0) this.#line(asBuffer(this.#rest), 0, this.#rest.length);
    this.#rest = EMPTY;
    if (this.#cut !== undefined) this.#close(this.#cut);
  }

  /** No more for now: pending lines are passed as they are. */
  pause(): void {
    for (const [stream, open] of this.#open) {
      if (open.bytes > 0) this.#giveBegun(open, stream);
    }
  }

  /** The output ended for good: unfinished lines are passed as they are. */
  end(): void {
    this.endFile();
    for (const [stream, open] of this.#open) {
      if (open.bytes > 0) this.#sink.piece(pieceOf(open, stream, false));
    }
    this.#open.clear();
  }

  /** The file was truncated while being read: pending lines are dropped. */
  reset(): void {
    this.#rest = EMPTY;
    this.#cut = undefined;
    this.#open.clear();
  }

  /** Passes what there is of a line whose newline is not in sight; returns the end of the bytes. */
  #cutOff(bytes: Buffer, begin: number): number {
    const parts = this.#parts;
    const isCri = findCriParts(bytes, begin, bytes.length, parts);
    const { stream, partial } = parts;
    // Text in another format is a line of its own, whatever is open.
    const cut: CutLine = isCri
      ? { open: this.#opened(bytes, begin), stream, partial }
      : { open: openLine(""), stream: "stdout", partial: false };
    this.#cut = cut;
    return this.#goOn(cut, bytes, isCri ? parts.textBegin : begin);
  }

  /** Passes the next bytes of the line up to its newline; returns where the line after it begins. */
  #goOn(cut: CutLine, bytes: Buffer, begin: number): number {
    const newline = bytes.indexOf(NEWLINE, begin);
    const end = newline < 0 ? bytes.length : newline;
    if (end > begin) {
      cut.open.parts.push(bytes.subarray(begin, end));
      cut.open.bytes += end - begin;
    }
    if (newline < 0) this.#giveBegun(cut.open, cut.stream);
    else this.#close(cut);
    return newline < 0 ? end : newline + 1;
  }

  #close({ open, stream, partial }: CutLine): void {
    this.#cut = undefined;
    if (partial) {
      if (open.bytes > 0) this.#giveBegun(open, stream);
      return;
    }
    this.#sink.piece(pieceOf(open, stream, true));
    if (this.#open.get(stream) === open) this.#open.delete(stream);
  }

  #line(bytes: Buffer, begin: number, end: number): void {
    const parts = this.#parts;
    if (!findCriParts(bytes, begin, end, parts)) {
      this.#sink.piece({ time: "", stream: "stdout", text: bytes.subarray(begin, end), start: true, end: true });
    } else if (parts.partial || (this.#open.size > 0 && this.#open.has(parts.stream))) {
      this.#part(bytes, begin, end);
    } else {
      this.#sink.whole(bytes, begin, end, parts);
    }
  }

  #part(bytes: Buffer, begin: number, end: number): void {
    const { stream, partial, textBegin } = this.#parts;
    const open = this.#opened(bytes, begin);
    open.parts.push(new Uint8Array(bytes.subarray(textBegin, end)));
    open.bytes += end - textBegin;
    if (!partial) {
      this.#sink.piece(pieceOf(open, stream, true));
      this.#open.delete(stream);
    } else if (open.bytes >= MAX_LINE_BYTES) {
      this.#giveBegun(open, stream);
    }
  }

  /** The line that the raw line at `begin` starts or continues. */
  #opened(bytes: Buffer, begin: number): OpenLine {
    const { stream, timeEnd } = this.#parts;
    const open = this.#open.get(stream) ?? openLine(latin1(bytes, begin, timeEnd));
    this.#open.set(stream, open);
    return open;
  }

  #giveBegun(open: OpenLine, stream: LogStream): void {
    this.#sink.piece(pieceOf(open, stream, false));
    open.parts = [];
    open.bytes = 0;
    open.given = true;
  }
}

function openLine(time: string): OpenLine {
  return { time, parts: [], bytes: 0, given: false };
}

function pieceOf(open: OpenLine, stream: LogStream, end: boolean): LogLine {
  return { time: open.time, stream, text: concat(open.parts), start: !open.given, end };
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
