import { behindSpace, breakLength, breaksIn, folded, isBlank, nextMatch, spaceWithBreak } from "./characters.ts";
import { ScalarError } from "./scalars.ts";

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

/** Hex digits of each escape. */
const digitsOf: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

const special = /[\\\r\n\u0085\u2028\u2029]/gu;

/**
 * Decodes a double-quoted scalar of YAML 1.1 as Kubernetes' parser does: it supports `\'`, but neither JSON's `\/` nor
 * surrogate halves.
 * @param raw with its quotes
 * @throws ScalarError for an invalid escape
 */
export function unquote(raw: string): string {
  const parts: string[] = [];
  const end = raw.length - 1;
  for (let at = 1; at < end;) {
    const found = Math.min(nextMatch(special, raw, at), end);
    if (found === end || raw[found] === "\\") {
      parts.push(raw.slice(at, found));
      at = found === end ? end : unescape(raw, found + 1, parts);
    } else {
      let last = found;
      while (last > at && isBlank(raw, last - 1)) last--;
      const { next } = behindSpace(raw, found);
      parts.push(raw.slice(at, last), folded(raw.slice(found, next)));
      at = next;
    }
  }
  return parts.join("");
}

/** Adds the character of an escape, and returns the offset after it. */
function unescape(raw: string, at: number, parts: string[]): number {
  const length = breakLength(raw, at);
  if (length > 0) {
    const { next } = behindSpace(raw, at + length);
    parts.push(breaksIn(raw.slice(at + length, next)));
    return next;
  }
  const mark = raw.charAt(at);
  const digits = digitsOf[mark];
  if (digits !== undefined) {
    const code = raw.slice(at + 1, at + 1 + digits);
    if (!/^[0-9a-fA-F]+$/u.test(code) || code.length < digits) throw unknownEscape();
    parts.push(character(Number.parseInt(code, 16)));
    return at + 1 + digits;
  }
  const text = escapes[mark];
  if (text === undefined) throw unknownEscape();
  parts.push(text);
  return at + 1;
}

/**
 * Decodes a single-quoted scalar of YAML 1.1.
 * @param raw with its quotes
 */
export function unquoteSingle(raw: string): string {
  return raw.slice(1, -1).replaceAll("''", "'").replaceAll(spaceWithBreak, folded);
}

function character(code: number): string {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) throw unknownEscape();
  return String.fromCodePoint(code);
}

function unknownEscape(): ScalarError {
  return new ScalarError(
    "unknown escape sequence in a double-quoted string; use single quotes for a literal backslash",
  );
}
