/** A syntax error at an offset of the text. */
export class YamlError extends Error {
  readonly offset: number;

  /** @param detail for the author of the text; must not quote it, because it may contain a secret */
  constructor(offset: number, detail: string) {
    super(detail);
    this.name = "YamlError";
    this.offset = offset;
  }
}

export const [tab, lineFeed, carriageReturn, space] = [0x09, 0x0a, 0x0d, 0x20];

/** The length of the line break at an offset; 0 for none. YAML 1.1 has more kinds of line breaks than other formats. */
export function breakLength(text: string, at: number): number {
  switch (text.charCodeAt(at)) {
    case lineFeed:
    case 0x85:
    case 0x2028:
    case 0x2029:
      return 1;
    case carriageReturn:
      return text.charCodeAt(at + 1) === lineFeed ? 2 : 1;
    default:
      return 0;
  }
}

export function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === space || code === tab;
}

export function isBreakOrEnd(text: string, at: number): boolean {
  return at >= text.length || breakLength(text, at) > 0;
}

/** A blank, a line break, or the end of the text: what must follow an indicator such as `:`. */
export function isSpaceOrEnd(text: string, at: number): boolean {
  return isBlank(text, at) || isBreakOrEnd(text, at);
}

/** `---` or `...` at the start of a line, which ends a document anywhere. */
export function isDocumentMark(text: string, at: number): boolean {
  return (text.startsWith("---", at) || text.startsWith("...", at)) && isSpaceOrEnd(text, at + 3);
}

const anyBreak = /[\r\n\u0085\u2028\u2029]/gu;

export function endOfLine(text: string, at: number): number {
  return nextMatch(anyBreak, text, at);
}

/** The offset of the next match, or of the text's end. */
export function nextMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.index ?? text.length;
}

export const tabIndents = "invalid YAML: tabs cannot indent; use spaces";

/**
 * Skips blanks and line breaks.
 * @param line the line's start; tabs are not allowed in its indentation
 */
export function behindSpace(
  text: string,
  start: number,
  line = { lineStart: 0, indent: -1 },
): { readonly next: number; readonly lineStart: number } {
  let [next, lineStart] = [start, line.lineStart];
  for (;;) {
    const code = text.charCodeAt(next);
    if (code === tab && lineStart > start && next - lineStart <= line.indent) throw new YamlError(next, tabIndents);
    if (code === space || code === tab) {
      next++;
      continue;
    }
    const length = breakLength(text, next);
    if (length === 0) return { next, lineStart };
    next += length;
    lineStart = next;
  }
}

/** Space with a line break. The lookbehind makes each run match from its start only, which avoids quadratic time. */
export const spaceWithBreak = /(?<![ \t])[ \t]*[\r\n\u0085\u2028\u2029][ \t\r\n\u0085\u2028\u2029]*/gu;

/** The line breaks in a run of space that count in a scalar. */
export function breaksIn(gap: string): string {
  if (gap === "" || gap === "\n") return gap;
  return gap.replaceAll(/\r\n?|\u0085/gu, "\n").replaceAll(/[ \t]+/gu, "");
}

/**
 * Folds a run of space with line breaks between two words: a single break becomes a space, of several the first is
 * dropped.
 */
export function folded(gap: string): string {
  const breaks = breaksIn(gap);
  return breaks.startsWith("\n") ? breaks.slice(1) || " " : breaks;
}
