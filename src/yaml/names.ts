import { YamlError, endOfLine, isBreakOrEnd, isSpaceOrEnd } from "./characters.ts";
import type { Token } from "./tokens.ts";

/** A token, and the offset after it. */
export interface FoundToken {
  readonly token: Token;
  readonly next: number;
}

const needsQuotes = (mark: string): string => `a string that starts with ${mark} needs quotes`;
const name = /[\w-]+/uy;
const uri = /(?:[\w;/?:@&=+$,.!~*'()[\]-]|%[0-9a-fA-F]{2})*/uy;

/** Matches a sticky pattern at an offset. */
function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** `&name` or `*name`. */
export function anchorOrAlias(text: string, start: number): FoundToken {
  const mark = text.charAt(start);
  const [found = ""] = matchAt(name, text, start + 1) ?? [];
  const next = start + 1 + found.length;
  if (found === "" || !(isSpaceOrEnd(text, next) || "?:,]}%@`".includes(text.charAt(next)))) {
    throw new YamlError(start, `an ${mark === "&" ? "anchor" : "alias"} is not well formed; ${needsQuotes(mark)}`);
  }
  return { token: { kind: mark === "&" ? "anchor" : "alias", start, name: found }, next };
}

const handlePattern = /!(?:[\w-]*!)?/uy;

/** `!`, `!local`, `!!known`, `!handle!local` or `!<verbatim>`. */
export function tagAt(text: string, start: number): FoundToken {
  const isWhole = text[start + 1] === "<";
  const handle = isWhole ? "" : (matchAt(handlePattern, text, start)?.[0] ?? "");
  const from = start + (isWhole ? 2 : handle.length);
  const [written = ""] = matchAt(uri, text, from) ?? [];
  const next = from + written.length + (isWhole ? 1 : 0);
  const isShort = isWhole || handle.length > 1 ? written === "" : false;
  const isOpen = isWhole && text[next - 1] !== ">";
  const suffix = decoded(written);
  if (isShort || isOpen || suffix === undefined || !isSpaceOrEnd(text, next)) {
    throw new YamlError(start, `a tag is not well formed; ${needsQuotes("!")}`);
  }
  const isAlone = handle === "!" && suffix === "";
  return { token: { kind: "tag", start, handle: isAlone ? "" : handle, suffix: isAlone ? "!" : suffix }, next };
}

function decoded(written: string): string | undefined {
  try {
    return written.includes("%") ? decodeURIComponent(written) : written;
  } catch {
    return undefined;
  }
}

const version = /%YAML[ \t]+(\d{1,2}\.\d{1,2})/uy;
const handle = /%TAG[ \t]+(!(?:[\w-]*!)?)[ \t]+/uy;

/** `%YAML` or `%TAG`, up to the line break. */
export function directiveAt(text: string, start: number): FoundToken {
  const { token, next } = versionAt(text, start) ?? prefixAt(text, start) ?? { token: undefined, next: start };
  let end = next;
  while (text[end] === " " || text[end] === "\t") end++;
  if (text[end] === "#") end = endOfLine(text, end);
  if (token !== undefined && isBreakOrEnd(text, end)) return { token, next: end };
  throw new YamlError(start, "a line that starts with % is a YAML directive, and this one is unknown");
}

function versionAt(text: string, start: number): FoundToken | undefined {
  const found = matchAt(version, text, start);
  if (found === null) return undefined;
  return { token: { kind: "version", start, version: found[1] ?? "" }, next: start + found[0].length };
}

function prefixAt(text: string, start: number): FoundToken | undefined {
  const found = matchAt(handle, text, start);
  if (found === null) return undefined;
  const from = start + found[0].length;
  const [written = ""] = matchAt(uri, text, from) ?? [];
  const prefix = decoded(written);
  const next = from + written.length;
  if (prefix === undefined || prefix === "" || !isSpaceOrEnd(text, next)) return undefined;
  return { token: { kind: "handle", start, handle: found[1] ?? "", prefix }, next };
}
