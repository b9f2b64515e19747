/** What is wrong with a text that is no YAML, and where: an offset in the text. */
export class YamlError extends Error {
  readonly offset: number;

  /** @param detail for the author of the text, in words that hold nothing of it: it may be a secret */
  constructor(offset: number, detail: string) {
    super(detail);
    this.name = "YamlError";
    this.offset = offset;
  }
}

export const [tab, lineFeed, carriageReturn, space] = [0x09, 0x0a, 0x0d, 0x20];

/** Characters of the break of a line that stands there; 0 for none. YAML 1.1 knows more of them than others. */
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

/** A blank, a break of the line, or the end of the text: what ends an indicator such as `:`. */
export function isSpaceOrEnd(text: string, at: number): boolean {
  return isBlank(text, at) || isBreakOrEnd(text, at);
}

/** `---` or `...` at the start of a line, which ends a document wherever it stands. */
export function isDocumentMark(text: string, at: number): boolean {
  return (text.startsWith("---", at) || text.startsWith("...", at)) && isSpaceOrEnd(text, at + 3);
}

const anyBreak = /[\r\n\u0085\u2028\u2029]/gu;

export function endOfLine(text: string, at: number): number {
  return nextMatch(anyBreak, text, at);
}

/** Where the pattern matches next; the text's end for nowhere. */
export function nextMatch(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.exec(text)?.index ?? text.length;
}

export const tabIndents = "invalid YAML: tabs cannot indent; use spaces";

/**
 * What stands behind blanks and breaks of lines.
 * @param line where the space begins; a tab may not stand where a line within it is indented yet
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

/** Space that is more than blanks. A run is looked at from its start only: a long one would take its length squared. */
export const spaceWithBreak = /(?<![ \t])[ \t]*[\r\n\u0085\u2028\u2029][ \t\r\n\u0085\u2028\u2029]*/gu;

/** The breaks in a run of space, as they count in a text. */
export function breaksIn(gap: string): string {
  if (gap === "" || gap === "\n") return gap;
  return gap.replaceAll(/\r\n?|\u0085/gu, "\n").replaceAll(/[ \t]+/gu, "");
}

/** What a run of space with a break means between two words: one break is a space, of more the first does not count. */
export function folded(gap: string): string {
  const breaks = breaksIn(gap);
  return breaks.startsWith("\n") ? breaks.slice(1) || " " : breaks;
}
