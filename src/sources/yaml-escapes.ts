import { ScalarError } from "./yaml-scalars.ts";

const escapes: Readonly<Record<string, string>> = {
  "0": "\0",
  a: "\x07",
  b: "\b",
  t: "\t",
  "\t": "\t",
  n: "\n",
  v: "\v",
  f: "\f",
  r: "\r",
  e: "\x1b",
  " ": " ",
  '"': '"',
  "'": "'",
  "\\": "\\",
  N: "\u0085",
  _: "\u00a0",
  L: "\u2028",
  P: "\u2029",
};

const piece =
  /\\(?:(?:\r?\n|\u0085)([ \t\r\n\u0085]*)|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^]?))|[ \t]*(?:\r?\n|\u0085)([ \t\r\n\u0085]*)|[ \t]*([\u2028\u2029])[ \t]*/gu;

/**
 * The text of a double-quoted scalar of YAML 1.1, as Kubernetes' reader has it: it knows `\'` and not JSON's `\/`, and no
 * halves of characters.
 * @param raw with its quotes
 * @throws ScalarError for an escape that is none
 */
export function unquote(raw: string): string {
  return raw.slice(1, -1).replaceAll(piece, (...match: (string | undefined)[]) => {
    const [, afterEscapedBreak, x, u, U, escaped, afterBreak, keptBreak] = match;
    if (afterEscapedBreak !== undefined) return breaksIn(afterEscapedBreak);
    if (afterBreak !== undefined) return breaksIn(afterBreak) || " ";
    if (keptBreak !== undefined) return keptBreak;
    const code = x ?? u ?? U;
    if (code !== undefined) return character(Number.parseInt(code, 16));
    const text = escapes[escaped ?? ""];
    if (text === undefined) throw unknownEscape();
    return text;
  });
}

/**
 * The text of a single-quoted scalar of YAML 1.1.
 * @param raw with its quotes
 */
export function unquoteSingle(raw: string): string {
  const text = raw.slice(1, -1).replaceAll("''", "'");
  return text.replaceAll(
    /[ \t]*(?:\r?\n|\u0085)([ \t\r\n\u0085]*)|[ \t]*([\u2028\u2029])[ \t]*/gu,
    (...match: (string | undefined)[]) => match[2] ?? (breaksIn(match[1] ?? "") || " "),
  );
}

function breaksIn(space: string): string {
  return "\n".repeat(space.split(/[\n\u0085]/u).length - 1);
}

function character(code: number): string {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw unknownEscape();
  return String.fromCodePoint(code);
}

function unknownEscape(): ScalarError {
  return new ScalarError("unknown escape sequence in a double-quoted text; use single quotes for a literal backslash");
}
