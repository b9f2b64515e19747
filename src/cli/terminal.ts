import { once } from "node:events";
import { stripVTControlCharacters, styleText } from "node:util";
import type { Paint } from "../journal/text.ts";

type Style = Parameters<typeof styleText>[0];

/** Colours, if enabled; otherwise the text itself. */
export class Painter implements Paint {
  readonly enabled: boolean;

  constructor(enabled: boolean) {
    this.enabled = enabled;
  }

  strong = (text: string): string => this.#paint("bold", text);
  faint = (text: string): string => this.#paint("dim", text);
  good = (text: string): string => this.#paint("green", text);
  caution = (text: string): string => this.#paint("yellow", text);
  bad = (text: string): string => this.#paint("red", text);
  accent = (text: string): string => this.#paint("cyan", text);

  #paint(style: Style, text: string): string {
    return this.enabled && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  }
}

/** An output stream of the process, or a test's. */
export interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(data: string | Uint8Array): boolean;
}

/** The width of a line in characters, without styles. */
export function visibleWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}

/** Truncates a line, so that a terminal does not wrap it; a truncated line loses its styles. */
export function fitLine(text: string, columns: number): string {
  if (visibleWidth(text) <= columns) return text;
  const characters = [...stripVTControlCharacters(text)];
  return `${characters.slice(0, Math.max(columns - 1, 0)).join("")}…`;
}

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_TO_END = "\u001b[0J";

/**
 * A command's output. Lines go to standard output, warnings to standard error. On a terminal a live region of a few lines
 * stays below them and is redrawn in place; elsewhere it is omitted.
 */
export class Terminal implements Disposable {
  readonly paint: Painter;
  /** Colours for standard error, which may be a terminal when standard output is not. */
  readonly warnPaint: Painter;
  readonly interactive: boolean;
  readonly #out: OutputStream;
  readonly #err: OutputStream;
  readonly #closed = new AbortController();
  #live: readonly string[] = [];
  #drawnLines = 0;

  constructor(out: OutputStream, err: OutputStream, environment: Readonly<Record<string, string | undefined>>) {
    this.#out = out;
    this.#err = err;
    this.interactive = out.isTTY === true && environment["TERM"] !== "dumb";
    this.paint = new Painter(colours(out, environment));
    this.warnPaint = new Painter(colours(err, environment));
  }

  get columns(): number {
    // Some pseudo terminals report 0 for unknown.
    return this.#out.columns || 80;
  }

  /** Aborts when standard output is closed (`podwright … | head`). */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Marks standard output as closed: later output is discarded. */
  close(): void {
    this.#closed.abort();
  }

  /** Prints one or more whole lines on standard output. */
  print(text: string): void {
    this.#above(this.#out, `${text}\n`);
  }

  /** Prints one or more whole lines on standard error. */
  warn(text: string): void {
    this.#above(this.#err, `${text}\n`);
  }

  /** Writes bytes unchanged; resolves when the reader accepts more, so that a slow reader bounds the buffer. */
  async write(stream: "stdout" | "stderr", data: string | Uint8Array): Promise<void> {
    const output = stream === "stdout" ? this.#out : this.#err;
    if (this.closed.aborted || output.write(data) || !isEmitter(output)) return;
    await once(output, "drain", { signal: this.closed }).catch(() => {});
  }

  /** Whether the stream is a terminal: then foreign text must be escaped. */
  isTerminal(stream: "stdout" | "stderr"): boolean {
    return (stream === "stdout" ? this.#out : this.#err).isTTY === true;
  }

  /** Replaces the live region; no lines remove it. */
  live(lines: readonly string[]): void {
    if (!this.interactive || this.closed.aborted) return;
    if (lines.length === this.#live.length && lines.every((line, index) => line === this.#live[index])) return;
    this.#live = lines;
    this.#out.write(this.#erase() + this.#draw());
  }

  [Symbol.dispose](): void {
    this.live([]);
  }

  #above(stream: OutputStream, text: string): void {
    if (this.closed.aborted) return;
    if (this.#drawnLines === 0) {
      stream.write(text);
      return;
    }
    if (stream === this.#out) {
      stream.write(this.#erase() + text + this.#draw());
      return;
    }
    this.#out.write(this.#erase());
    stream.write(text);
    this.#out.write(this.#draw());
  }

  #erase(): string {
    if (this.#drawnLines === 0) return "";
    const up = `\u001b[${this.#drawnLines}A\r`;
    this.#drawnLines = 0;
    return up + CLEAR_TO_END + SHOW_CURSOR;
  }

  #draw(): string {
    if (this.#live.length === 0) return "";
    this.#drawnLines = this.#live.length;
    const lines = this.#live.map((line) => `${fitLine(line, this.columns - 1)}\n`);
    return HIDE_CURSOR + lines.join("");
  }
}

/** https://no-color.org: any value that is not empty switches colours off. */
function colours(stream: OutputStream, environment: Readonly<Record<string, string | undefined>>): boolean {
  if (environment["NO_COLOR"] !== undefined && environment["NO_COLOR"] !== "") return false;
  return stream.isTTY === true && environment["TERM"] !== "dumb";
}

function isEmitter(stream: OutputStream): stream is OutputStream & NodeJS.EventEmitter {
  return "once" in stream;
}
