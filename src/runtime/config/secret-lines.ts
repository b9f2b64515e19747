import type { SecretContent } from "../../api/object-content.ts";

/** Shorter values occur in any text by chance. */
const leastCharacters = 4;
/** Preparing that many takes 50 ms. Certificates have 16,000 lines in a Secret of 1 MiB. */
export const mostLines = 20_000;

/** What one search may still cost: a step is a comparison. */
interface SearchSteps {
  left: number;
}

/** The part of the sorted lines that begin alike. */
type Range = readonly [from: number, to: number];

const nothing: Range = [0, 0];

/**
 * The values of a Secret, whole and line by line, to be found in texts. The author of a pod chooses both: no search takes
 * more than its steps.
 */
export class SecretLines {
  /** Keys of the Secret by their lines, which are sorted by UTF-16 code units. */
  readonly #keys: ReadonlyMap<string, string>;
  readonly #sorted: readonly string[];
  /** By the first characters. */
  readonly #ranges = new Map<string, Range>();

  private constructor(keys: ReadonlyMap<string, string>) {
    this.#keys = keys;
    this.#sorted = [...keys.keys()].toSorted();
    let from = 0;
    for (const [index, line] of this.#sorted.entries()) {
      const begin = line.slice(0, leastCharacters);
      if (!this.#sorted[from]?.startsWith(begin)) from = index;
      this.#ranges.set(begin, [from, index + 1]);
    }
  }

  /** Undefined for a Secret of too many lines to look for. */
  static of({ data }: SecretContent): SecretLines | undefined {
    const keys = new Map<string, string>();
    for (const [key, bytes] of data) {
      const value = Buffer.from(bytes).toString().trim();
      // Not split at space around the line breaks: that takes quadratic time in a value of much space.
      for (const line of [value, ...value.split("\n")]) {
        const text = line.trim();
        if (text.length >= leastCharacters) keys.set(text, key);
        if (keys.size > mostLines) return undefined;
      }
    }
    return new SecretLines(keys);
  }

  get count(): number {
    return this.#sorted.length;
  }

  /** The key of a line, as {@link longestAt} returns it. */
  keyOf(line: string): string {
    return this.#keys.get(line) ?? "";
  }

  /** The longest line that stands at this position of the text; undefined: none, or there are no steps left. */
  longestAt(text: string, position: number, steps: SearchSteps): string | undefined {
    steps.left--;
    let [from, to] = this.#ranges.get(text.slice(position, position + leastCharacters)) ?? nothing;
    let longest: string | undefined;
    for (let depth = leastCharacters; from < to && steps.left > 0; depth++) {
      steps.left--;
      // The shortest one is the first.
      const first = this.#sorted[from] ?? "";
      if (first.length === depth) {
        longest = first;
        from++;
      }
      // NaN at the end of the text, which no line has.
      const code = text.charCodeAt(position + depth);
      if (this.#codeOf(from, depth) === code && this.#codeOf(to - 1, depth) === code) continue;
      from = this.#firstNotBelow(code, depth, from, to, steps);
      to = this.#firstNotBelow(code + 1, depth, from, to, steps);
    }
    return longest;
  }

  #firstNotBelow(code: number, depth: number, from: number, to: number, steps: SearchSteps): number {
    let [low, high] = [from, to];
    while (low < high) {
      steps.left--;
      const middle = (low + high) >> 1;
      if (this.#codeOf(middle, depth) < code) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #codeOf(index: number, depth: number): number {
    return this.#sorted[index]?.charCodeAt(depth) ?? Number.NaN;
  }
}
