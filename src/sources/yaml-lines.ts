import { Lexer } from "yaml";

/** The YAML parser needs a microsecond and more by the token, so their number is bounded as well as the file's size. */
export const maxTokens = 500_000;

/** A break of lines that the parser takes for any other character of a quoted text. */
const quotedBreak = "\u0085";

/**
 * YAML 1.1 lets the lines of a quoted text and what stands in brackets begin anywhere, as in an annotation that holds
 * JSON; the parser wants them indented. Joins such lines, so that every character keeps its offset: breaks in a quoted
 * text become {@link quotedBreak}, others space. Undefined for more tokens than {@link maxTokens}.
 */
export function joinLines(text: string): string | undefined {
  let joined = text;
  let start = 0;
  let [tokens, characters] = [0, 0];
  // Behind what is joined its document is read anew, but not for ever: what is left then is an error.
  while (characters <= mostCharacters) {
    const found = firstSlip(joined, start);
    if (found.tokens > maxTokens) return undefined;
    tokens = found.document === start ? tokens + found.tokens : found.tokens;
    characters += text.length;
    if (found.slip === undefined || tokens > maxTokens / 2) return joined;
    start = found.document;
    joined = found.slip(joined);
  }
  return joined;
}

const mostCharacters = 100_000_000;

interface Found {
  readonly tokens: number;
  /** Where the document starts in which something was found. */
  readonly document: number;
  /** Mends it. */
  readonly slip: ((text: string) => string) | undefined;
}

const [scalarToken, flowEndToken] = ["\u001f", "\u0018"];
const marks = new Set(["\u0002", scalarToken, flowEndToken]);

function firstSlip(text: string, start: number): Found {
  let [offset, document, tokens, before, comment] = [start, start, 0, "", -1];
  for (const token of new Lexer().lex(text.slice(start))) {
    if (++tokens > maxTokens) break;
    const at = offset;
    const slip =
      token === flowEndToken
        ? lowLine(text, at, comment)
        : before === scalarToken
          ? undefined
          : lowQuote(text, at, token);
    if (slip !== undefined) return { tokens, document, slip };
    if (token === "---") document = at;
    if (token.startsWith("#")) comment = at;
    if (!marks.has(token)) offset += token.length;
    before = token;
  }
  return { tokens, document, slip: undefined };
}

/** Of a quoted text that ends before its closing quote. */
function lowQuote(text: string, at: number, token: string): Found["slip"] {
  const quote = token[0];
  if (quote !== '"' && quote !== "'") return undefined;
  const end = endOfQuoted(text, at, quote);
  // What goes on after it has a quote too few before.
  if (end <= at + token.length || !/^[\s,:\]}]?$/u.test(text.charAt(end))) return undefined;
  const whole = text.slice(at, end);
  if (/\n(?:---|\.\.\.)\s/u.test(whole)) return undefined;
  const line = whole.replaceAll(/\r?\n/gu, (lineBreak) => quotedBreak.padEnd(lineBreak.length));
  return (all) => all.slice(0, at) + line + all.slice(end);
}

/** Behind its closing quote; 0 when there is none. */
export function endOfQuoted(text: string, at: number, quote: string): number {
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

/** Of brackets that go on in a line that is not indented. */
function lowLine(text: string, at: number, comment: number): Found["slip"] {
  const lineBreak = text.lastIndexOf("\n", at - 1);
  if (lineBreak < 0 || at >= text.length || /\S/u.test(text.slice(lineBreak, at))) return undefined;
  if (/^(?:---|\.\.\.)\s/u.test(text.slice(lineBreak + 1, lineBreak + 5))) return undefined;
  const end = text.slice(0, lineBreak).trimEnd().length;
  const from = comment > text.lastIndexOf("\n", end - 1) ? comment : end;
  return (all) => all.slice(0, from) + " ".repeat(at - from) + all.slice(at);
}
