import { asBuffer, type CriLineParts, latin1, type LogStream } from "./cri-line.ts";
import { CriLogDecoder, type LineSink, type LogLine } from "./cri-log.ts";
import { fixedTime } from "./line-time.ts";

/** Decodes the bytes of a log as they are read. */
export interface Decoding<T> {
  /** Complete lines still to be skipped. */
  skip: number;
  /** Whether no result refers to the input bytes. */
  readonly copies: boolean;
  push(bytes: Uint8Array): T;
  /** The file has ended for good: it was rotated. */
  endFile(): T;
  /** No more data for now. */
  pause(): T;
  /** The output has ended for good. */
  end(): T;
  /** The file was truncated while being read. */
  reset(): T;
}

/** True for the times of lines ({@link LogLine.time}) that are wanted. */
export type TimeFilter = (time: string) => boolean;

/** The requested text format of a log. */
export interface TextOptions {
  /** Undefined: both. */
  readonly stream: LogStream | undefined;
  /** Prefix each line with its time ({@link fixedTime}). */
  readonly timestamps: boolean;
  readonly include: TimeFilter | undefined;
}

abstract class FilteredDecoding<T> implements Decoding<T>, LineSink {
  skip = 0;
  abstract readonly copies: boolean;
  readonly #decoder = new CriLogDecoder(this);
  readonly #include: TimeFilter | undefined;

  constructor(include: TimeFilter | undefined) {
    this.#include = include;
  }

  push(bytes: Uint8Array): T {
    this.expect(bytes.length);
    this.#decoder.push(bytes);
    return this.take();
  }

  endFile(): T {
    this.#decoder.endFile();
    return this.take();
  }

  pause(): T {
    this.#decoder.pause();
    return this.take();
  }

  end(): T {
    this.#decoder.end();
    return this.take();
  }

  reset(): T {
    this.#decoder.reset();
    return this.take();
  }

  whole(bytes: Buffer, begin: number, end: number, parts: Readonly<CriLineParts>): void {
    if (this.skip > 0) this.skip--;
    else if (this.#include === undefined || this.#include(latin1(bytes, begin, parts.timeEnd))) {
      this.addWhole(bytes, begin, end, parts);
    }
  }

  piece(line: LogLine): void {
    if (this.skip > 0) {
      if (line.end) this.skip--;
    } else if (this.#include === undefined || line.time === "" || this.#include(line.time)) {
      this.addPiece(line);
    }
  }

  /** Announces the size of the input. */
  protected expect(_bytes: number): void {}
  protected abstract addWhole(bytes: Buffer, begin: number, end: number, parts: Readonly<CriLineParts>): void;
  protected abstract addPiece(line: LogLine): void;
  /** Returns the output since the last call. */
  protected abstract take(): T;
}

/** Lines, for consumers of single lines. */
export class LineDecoding extends FilteredDecoding<LogLine[]> {
  override readonly copies = false;
  #lines: LogLine[] = [];

  protected override addWhole(bytes: Buffer, begin: number, end: number, parts: Readonly<CriLineParts>): void {
    const { timeEnd, stream, textBegin } = parts;
    const time = latin1(bytes, begin, timeEnd);
    this.#lines.push({ time, stream, text: bytes.subarray(textBegin, end), start: true, end: true });
  }

  protected override addPiece(line: LogLine): void {
    this.#lines.push(line);
  }

  protected override take(): LogLine[] {
    const lines = this.#lines;
    this.#lines = [];
    return lines;
  }
}

const newline = 0x0a;
const point = 0x2e;
const letterZ = 0x5a;
/** `2026-11-20T14:02:11.123456789Z` */
const fixedLength = 30;
/** By how much {@link fixedTime} may lengthen a time. */
const paddingBytes = 10;

/**
 * The container's text, copied from the log without the runtime's prefixes. Creates no objects for lines, which makes
 * it many times faster than {@link LineDecoding}.
 */
export class TextDecoding extends FilteredDecoding<Uint8Array> {
  override readonly copies = true;
  readonly #stream: LogStream | undefined;
  readonly #timestamps: boolean;
  #text = Buffer.alloc(0);
  #length = 0;

  constructor({ stream, timestamps, include }: TextOptions) {
    super(include);
    this.#stream = stream;
    this.#timestamps = timestamps;
  }

  protected override expect(bytes: number): void {
    this.#reserve(bytes);
  }

  protected override addWhole(bytes: Buffer, begin: number, end: number, parts: Readonly<CriLineParts>): void {
    const { timeEnd, stream, textBegin } = parts;
    if (this.#stream !== undefined && stream !== this.#stream) return;
    this.#reserve(end - begin + 1 + paddingBytes);
    if (this.#timestamps) this.#addTime(bytes, begin, timeEnd);
    this.#copy(bytes, textBegin, end);
    this.#byte(newline);
  }

  protected override addPiece({ time, stream, text, start, end }: LogLine): void {
    if (this.#stream !== undefined && stream !== this.#stream) return;
    this.#reserve(time.length + text.length + 2 + paddingBytes);
    if (this.#timestamps && start && time !== "") this.#write(`${fixedTime(time)} `);
    this.#copy(asBuffer(text), 0, text.length);
    if (end) this.#byte(newline);
  }

  protected override take(): Uint8Array {
    const text = this.#text.subarray(0, this.#length);
    this.#text = Buffer.alloc(0);
    this.#length = 0;
    return text;
  }

  /** Creates no string for a time that is shown as it was written. */
  #addTime(bytes: Buffer, begin: number, end: number): void {
    const isFixed = end - begin === fixedLength && bytes[begin + 19] === point && bytes[end - 1] === letterZ;
    if (isFixed) this.#copy(bytes, begin, end + 1);
    else this.#write(`${fixedTime(latin1(bytes, begin, end))} `);
  }

  #write(text: string): void {
    this.#length += this.#text.write(text, this.#length, "latin1");
  }

  #copy(bytes: Buffer, begin: number, end: number): void {
    bytes.copy(this.#text, this.#length, begin, end);
    this.#length += end - begin;
  }

  #byte(byte: number): void {
    this.#text[this.#length++] = byte;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#text.length) return;
    // Every byte up to the length is written before it is passed on.
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#text.length * 2));
    this.#text.copy(larger, 0, 0, this.#length);
    this.#text = larger;
  }
}
