import type { Position } from "./manifest-error.ts";
import { templateProblem } from "./placeholder.ts";

/** The lines of a text. Most texts are never asked: theirs are counted at the first question. */
export class Lines {
  readonly #text: string;
  #starts: readonly number[] | undefined;
  /** What was said of a line: one may be asked about many times. */
  readonly #templates = new Map<number, string | undefined>();

  constructor(text: string) {
    this.#text = text;
  }

  place(offset: number): Position {
    const starts = this.#lineStarts();
    let [low, high] = [0, starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  }

  /** What a line really is that is no YAML; undefined when it is no line of a template. */
  templateProblem(line: number): string | undefined {
    if (!this.#templates.has(line)) {
      // A parser tells of the line after as well.
      this.#templates.set(line, templateProblem([this.#line(line - 1), this.#line(line)]));
    }
    return this.#templates.get(line);
  }

  #line(line: number): string {
    const starts = this.#lineStarts();
    const start = starts[line - 1];
    return start === undefined ? "" : this.#text.slice(start, starts[line]);
  }

  #lineStarts(): readonly number[] {
    this.#starts ??= [
      0,
      ...Array.from(this.#text.matchAll(/\r\n?|\n/gu), ({ 0: found, index }) => index + found.length),
    ];
    return this.#starts;
  }
}
