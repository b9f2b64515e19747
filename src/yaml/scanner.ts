import {
  YamlError,
  breakLength,
  endOfLine,
  isDocumentMark,
  isSpaceOrEnd,
  space,
  tab,
  tabIndents,
} from "./characters.ts";
import { anchorOrAlias, directiveAt, tagAt, type FoundToken } from "./names.ts";
import { blockText, plainText, quotedText, type FoundText, type TextPlace } from "./texts.ts";
import type { ScalarStyle, Token } from "./tokens.ts";

/** A position where a key may begin. It is one if a `:` follows on the same line within the length limit. */
interface PossibleKey extends Pick<TextPlace, "start" | "lineStart"> {
  /** Index of its first token. */
  readonly token: number;
  /** Anything in a map's column must be a key. */
  readonly isRequired: boolean;
}

const longestKey = 1024;

/**
 * Splits one document into tokens, following YAML 1.1 and Kubernetes' parser (go-yaml 2). Changes of indentation become
 * tokens as well.
 * @param start at the beginning of a line
 * @param most maximum number of tokens
 */
export function scanDocument(text: string, start: number, most: number): Token[] {
  const scanner = new Scanner(text, start);
  try {
    while (scanner.tokens.length <= most && scanner.next());
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    scanner.tokens.push({ kind: "broken", start: error.offset, detail: error.message });
  }
  return scanner.tokens;
}

class Scanner {
  readonly tokens: Token[] = [];
  readonly #text: string;
  #at: number;
  #lineStart: number;
  /** Columns of the enclosing blocks, innermost last. */
  readonly #indents = [-1];
  /** The latest possible key at each level: the block, and every open bracket. */
  readonly #keys: (PossibleKey | undefined)[] = [undefined];
  #keyAllowed = true;
  #hasContent = false;

  constructor(text: string, start: number) {
    this.#text = text;
    this.#at = start;
    this.#lineStart = start;
  }

  /** Scans the next token; false at the end. */
  next(): boolean {
    this.#skipSpace();
    this.#closeBlocks(this.#column);
    const character = this.#text.charAt(this.#at);
    if (this.#column === 0 && (character === "%" || isDocumentMark(this.#text, this.#at))) {
      return this.#documentMark(character);
    }
    if (character === "") return this.#end();
    this.#hasContent = true;
    this.#token(character);
    return true;
  }

  get #inBrackets(): boolean {
    return this.#keys.length > 1;
  }

  get #indent(): number {
    return this.#indents.at(-1) ?? -1;
  }

  get #column(): number {
    return this.#at - this.#lineStart;
  }

  /** Tabs are not allowed as indentation. */
  #skipSpace(): void {
    const text = this.#text;
    for (;;) {
      const code = text.charCodeAt(this.#at);
      if (code === space || (code === tab && (this.#inBrackets || !this.#keyAllowed))) {
        this.#at++;
      } else if (code === 0x23) {
        this.#at = endOfLine(text, this.#at);
      } else {
        const length = breakLength(text, this.#at);
        if (length === 0) return;
        this.#at += length;
        this.#lineStart = this.#at;
        if (!this.#inBrackets) this.#keyAllowed = true;
      }
    }
  }

  #token(character: string): void {
    switch (character) {
      case "[":
      case "{":
        return this.#open(character);
      case "]":
      case "}":
        return this.#close(character);
      case ",":
        this.#forgetKey();
        this.#keyAllowed = true;
        return this.#mark(",");
      case "-":
        return isSpaceOrEnd(this.#text, this.#at + 1) ? this.#item() : this.#scalar("plain", plainText);
      case "?":
      case ":":
        if (!this.#inBrackets && !isSpaceOrEnd(this.#text, this.#at + 1)) return this.#scalar("plain", plainText);
        return character === "?" ? this.#key() : this.#value();
      case "*":
      case "&":
        return this.#name(anchorOrAlias);
      case "!":
        return this.#name(tagAt);
      case "'":
        return this.#scalar("single", quotedText);
      case '"':
        return this.#scalar("double", quotedText);
      case "|":
      case ">":
        return this.#inBrackets ? this.#refuse() : this.#block();
      case "%":
      case "@":
      case "`":
        return this.#refuse();
      case "\t":
        throw new YamlError(this.#at, tabIndents);
      default:
        this.#scalar("plain", plainText);
    }
  }

  #refuse(): never {
    throw new YamlError(this.#at, "a string that starts with @, `, % or another reserved character needs quotes");
  }

  #mark(kind: "[" | "]" | "{" | "}" | "," | "-" | "?" | ":"): void {
    this.tokens.push({ kind, start: this.#at });
    this.#at++;
  }

  /** A directive, `---` or `...`: the text before it is a document of its own. */
  #documentMark(character: string): boolean {
    const kind = character === "-" ? "---" : "...";
    if (this.#hasContent || (character === "." && this.tokens.length > 0)) return this.#end();
    this.#closeBlocks(-1);
    this.#keyAllowed = false;
    if (character === "%") {
      this.#found(directiveAt(this.#text, this.#at));
      return true;
    }
    this.#hasContent = true;
    this.tokens.push({ kind, start: this.#at });
    this.#at += kind.length;
    return true;
  }

  #end(): false {
    this.#closeBlocks(-1);
    this.#forgetKey();
    this.tokens.push({ kind: "over", start: this.#at });
    return false;
  }

  #closeBlocks(column: number): void {
    if (this.#inBrackets) return;
    for (; this.#indent > column; this.#indents.pop()) this.tokens.push({ kind: "end", start: this.#at });
  }

  /** Begins a block when its first item or key is indented more. */
  #openBlock(kind: "list" | "map", column: number): void {
    if (this.#inBrackets || this.#indent >= column) return;
    this.#indents.push(column);
    this.tokens.push({ kind, start: this.#at });
  }

  #open(bracket: "[" | "{"): void {
    this.#rememberKey();
    this.#keys.push(undefined);
    this.#keyAllowed = true;
    this.#mark(bracket);
  }

  #close(bracket: "]" | "}"): void {
    this.#forgetKey();
    if (this.#inBrackets) this.#keys.pop();
    this.#keyAllowed = false;
    this.#mark(bracket);
  }

  #item(): void {
    if (!this.#inBrackets && !this.#keyAllowed) {
      throw new YamlError(this.#at, "invalid YAML: a list cannot begin here; each dash needs its own line");
    }
    this.#openBlock("list", this.#column);
    this.#forgetKey();
    this.#keyAllowed = true;
    this.#mark("-");
  }

  #key(): void {
    if (!this.#inBrackets && !this.#keyAllowed) throw new YamlError(this.#at, "invalid YAML: a key cannot begin here");
    this.#openBlock("map", this.#column);
    this.#forgetKey();
    this.#keyAllowed = !this.#inBrackets;
    this.#mark("?");
  }

  #value(): void {
    const key = this.#keyHere();
    if (key === undefined) {
      if (!this.#inBrackets && !this.#keyAllowed) throw new YamlError(this.#at, secondColon);
      this.#openBlock("map", this.#column);
      this.#keyAllowed = !this.#inBrackets;
    } else {
      const column = key.start - key.lineStart;
      const inserted: Token[] = [{ kind: "?", start: key.start }];
      if (!this.#inBrackets && this.#indent < column) {
        this.#indents.push(column);
        inserted.unshift({ kind: "map", start: key.start });
      }
      this.tokens.splice(key.token, 0, ...inserted);
      this.#keys[this.#keys.length - 1] = undefined;
      this.#keyAllowed = false;
    }
    this.#mark(":");
  }

  /** The possible key before a `:`. */
  #keyHere(): PossibleKey | undefined {
    const key = this.#keys.at(-1);
    if (key === undefined) return undefined;
    const isNear = key.lineStart === this.#lineStart && !isLonger(this.#text, key.start, this.#at);
    if (!isNear && key.isRequired) this.#forgetKey();
    return isNear ? key : undefined;
  }

  #rememberKey(): void {
    if (!this.#keyAllowed) return;
    const isRequired = !this.#inBrackets && this.#indent === this.#column;
    this.#forgetKey();
    const [start, lineStart, token] = [this.#at, this.#lineStart, this.tokens.length];
    this.#keys[this.#keys.length - 1] = { start, lineStart, token, isRequired };
  }

  #forgetKey(): void {
    const key = this.#keys.at(-1);
    if (key?.isRequired === true) {
      const isLong = isLonger(this.#text, key.start, this.#at) && key.lineStart === this.#lineStart;
      throw new YamlError(key.start, isLong ? `invalid YAML: a key is longer than ${longestKey} characters` : noColon);
    }
    this.#keys[this.#keys.length - 1] = undefined;
  }

  #name(find: (text: string, start: number) => FoundToken): void {
    this.#rememberKey();
    this.#keyAllowed = false;
    this.#found(find(this.#text, this.#at));
  }

  #found({ token, next }: FoundToken): void {
    this.tokens.push(token);
    this.#at = next;
  }

  #scalar(style: ScalarStyle, find: (text: string, place: TextPlace) => FoundText): void {
    this.#rememberKey();
    const { end, lineStart } = this.#take(style, find);
    this.#keyAllowed = style === "plain" && lineStart > end;
  }

  #block(): void {
    this.#forgetKey();
    this.#take("block", blockText);
    this.#keyAllowed = true;
  }

  #take(style: ScalarStyle, find: (text: string, place: TextPlace) => FoundText): FoundText {
    const [start, lineStart, indent, inBrackets] = [this.#at, this.#lineStart, this.#indent, this.#inBrackets];
    const found = find(this.#text, { start, lineStart, indent, inBrackets });
    this.tokens.push({ kind: "scalar", style, start, text: found.text, end: found.end });
    this.#at = found.next;
    this.#lineStart = found.lineStart;
    return found;
  }
}

const noColon = `invalid YAML: a key must end with ": " on its own line`;
const secondColon = `invalid YAML: a second ": " in one line; quote the string, or check the indentation`;

/** Whether a key is too long; a surrogate pair counts as one character. */
function isLonger(text: string, start: number, end: number): boolean {
  return (
    end - start > longestKey &&
    Array.from(text.slice(start, Math.min(end, start + 2 * longestKey + 2))).length > longestKey
  );
}
