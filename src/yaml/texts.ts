import {
  YamlError,
  behindSpace,
  breakLength,
  breaksIn,
  endOfLine,
  folded,
  isBlank,
  isBreakOrEnd,
  isDocumentMark,
  nextMatch,
  space,
  spaceWithBreak,
  tab,
  tabIndents,
} from "./characters.ts";

/** Where a scalar begins, and the context that determines its end. */
export interface TextPlace {
  readonly start: number;
  readonly lineStart: number;
  /** Column of the enclosing block; -1 for none. */
  readonly indent: number;
  readonly inBrackets: boolean;
}

export interface FoundText {
  /** For a quoted scalar with its quotes. */
  readonly text: string;
  readonly end: number;
  /** After the following space. */
  readonly next: number;
  /** Start of the line that contains {@link next}. */
  readonly lineStart: number;
}

const plainEnd = /[ \t\r\n\u0085\u2028\u2029]|:(?=[ \t\r\n\u0085\u2028\u2029]|$)/gu;
const plainEndInBrackets = /[ \t\r\n\u0085\u2028\u2029,?[\]{}]|:(?=[ \t\r\n\u0085\u2028\u2029]|$)/gu;

/** An unquoted scalar, possibly over several lines. */
export function plainText(text: string, place: TextPlace): FoundText {
  const { start, indent, inBrackets } = place;
  const pattern = inBrackets ? plainEndInBrackets : plainEnd;
  let [end, at, lineStart] = [start, start, place.lineStart];
  while (!(at === lineStart && isDocumentMark(text, at)) && text[at] !== "#") {
    const wordEnd = nextMatch(pattern, text, at);
    if (wordEnd > at) end = wordEnd;
    ({ next: at, lineStart } = behindSpace(text, wordEnd, { lineStart, indent }));
    if (at === wordEnd || (!inBrackets && at - lineStart <= indent)) break;
  }
  return { text: text.slice(start, end).replaceAll(spaceWithBreak, folded), end, next: at, lineStart };
}

/** A quoted scalar, as written. */
export function quotedText(text: string, { start, lineStart }: TextPlace): FoundText {
  const end = endOfQuoted(text, start);
  const written = text.slice(start, end === 0 ? undefined : end);
  const last = written.search(/[\r\n\u0085\u2028\u2029](?=[^\r\n\u0085\u2028\u2029]*$)/u);
  const isCut = /[\r\n\u0085\u2028\u2029](?:---|\.\.\.)(?:[ \t\r\n\u0085\u2028\u2029]|$)/u.test(written);
  if (end === 0 || isCut) throw new YamlError(start, "invalid YAML: a closing quote is missing");
  return { text: written, end, next: end, lineStart: last < 0 ? lineStart : start + last + 1 };
}

/** The offset after the closing quote; 0 when it is missing. */
export function endOfQuoted(text: string, at: number): number {
  const quote = text.charAt(at);
  for (let end = text.indexOf(quote, at + 1); end > 0; end = text.indexOf(quote, end + 1)) {
    if (quote === "'") {
      if (text[end + 1] !== "'") return end + 1;
      end++;
    } else {
      let first = end;
      while (text[first - 1] === "\\") first--;
      if ((end - first) % 2 === 0) return end + 1;
    }
  }
  return 0;
}

interface BlockHeader {
  readonly isFolded: boolean;
  /** `-` removes the final line break, `+` keeps all final ones. */
  readonly chomping: string;
  /** Explicit indentation, relative to the enclosing block; 0 for none. */
  readonly given: number;
  /** At the line break. */
  readonly end: number;
}

const blockHeader = /([|>])(?:([-+])([1-9])?|([1-9])([-+])?)?[ \t]*/uy;

function headerOf(text: string, start: number): BlockHeader {
  blockHeader.lastIndex = start;
  const [all = "", style, first, second, third, fourth] = blockHeader.exec(text) ?? [];
  let end = start + all.length;
  if (text[end] === "#") end = endOfLine(text, end);
  if (!isBreakOrEnd(text, end)) {
    throw new YamlError(
      start,
      "invalid YAML: no text may follow | or > on its line; a string that starts with them needs quotes",
    );
  }
  return { isFolded: style === ">", chomping: first ?? fourth ?? "", given: Number(second ?? third ?? 0), end };
}

/** The block scalar below `|` or `>`. */
export function blockText(text: string, { start, indent }: TextPlace): FoundText {
  const { isFolded, chomping, given, end } = headerOf(text, start);
  const parts: string[] = [];
  let gap = emptyLines(text, end + breakLength(text, end), given === 0 ? 0 : Math.max(indent, 0) + given, indent);
  let [lastBreak, wasBlank] = ["", false];
  const { column } = gap;
  while (gap.next - gap.lineStart === column && gap.next < text.length) {
    const startsBlank = isBlank(text, gap.next);
    const joins = isFolded && !wasBlank && !startsBlank && lastBreak.startsWith("\n");
    if (!joins) parts.push(lastBreak);
    else if (gap.breaks === "") parts.push(" ");
    wasBlank = startsBlank;
    const lineEnd = endOfLine(text, gap.next);
    parts.push(gap.breaks, text.slice(gap.next, lineEnd));
    const next = lineEnd + breakLength(text, lineEnd);
    lastBreak = breaksIn(text.slice(lineEnd, next));
    gap = { ...emptyLines(text, next, column, indent), column };
  }
  if (chomping !== "-") parts.push(lastBreak);
  if (chomping === "+") parts.push(gap.breaks);
  return { text: parts.join(""), end: gap.next, next: gap.next, lineStart: gap.lineStart };
}

interface Gap {
  readonly breaks: string;
  readonly next: number;
  readonly lineStart: number;
  /** Column of the text: explicit, or that of the first non-blank line, or of the longest blank line before it. */
  readonly column: number;
}

/** Skips blank lines and the indentation of the line after them. */
function emptyLines(text: string, start: number, column: number, indent: number): Gap {
  let [next, lineStart, widest] = [start, start, 0];
  for (;;) {
    const isIndenting = (): boolean => column === 0 || next - lineStart < column;
    while (isIndenting() && text.charCodeAt(next) === space) next++;
    widest = Math.max(widest, next - lineStart);
    if (isIndenting() && text.charCodeAt(next) === tab) throw new YamlError(next, tabIndents);
    const length = breakLength(text, next);
    if (length === 0) break;
    next += length;
    lineStart = next;
  }
  const breaks = breaksIn(text.slice(start, lineStart));
  return { breaks, next, lineStart, column: column === 0 ? Math.max(widest, indent + 1, 1) : column };
}
