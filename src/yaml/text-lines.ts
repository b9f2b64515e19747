import type { Position } from "./manifest-error.ts";
import { templateProblem } from "./placeholder.ts";

/** The lines of a text, counted at the first use: most texts have no errors. */
export class Lines {
  readonly #text: string;
  #starts: readonly number[] | undefined;
  /** Cached results: one line may be asked about many times. */
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

  /** Explains invalid YAML that comes from a template; undefined otherwise. */
  templateProblem(line: number): string | undefined {
    if (!this.#templates.has(line)) {
      // A parser may report the line after the actual one.
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
