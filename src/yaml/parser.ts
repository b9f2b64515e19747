import { YamlError } from "./characters.ts";
import { quote } from "./manifest-error.ts";
import { maxDepth, tooDeep, type MapNode, type YamlNode } from "./nodes.ts";
import type { TagToken, Token } from "./tokens.ts";

/**
 * The value of one document; undefined if it is empty, without even `---`.
 * @param tokens from scanDocument
 * @throws YamlError
 */
export function parseTokens(tokens: readonly Token[]): YamlNode | undefined {
  return new Parser(tokens).document();
}

type Kind = Token["kind"];

type Entry = MapNode["entries"][number];

/** Where a block may begin, and whether its dashes may be in the column of the enclosing map. */
interface Place {
  readonly inBlock?: boolean;
  readonly inMap?: boolean;
}

interface Names {
  readonly anchor: string | undefined;
  readonly tag: string | undefined;
}

const knownPrefixes = new Map([
  ["!", "!"],
  ["!!", "tag:yaml.org,2002:"],
]);

/** Tokens that may follow in place of a missing value. */
const afterDash = new Set<Kind>(["-", "end"]);
const afterDashInMap = new Set<Kind>(["-", "?", ":", "end"]);
const afterKey = new Set<Kind>(["?", ":", "end"]);
const afterItem = new Set<Kind>([":", ",", "]"]);
const afterEntry = new Set<Kind>([":", ",", "}"]);

const lostHere = `invalid YAML: unexpected token; look for a missing ": ", dash, quote or bracket before it`;
const wrongIndent = "invalid YAML: the indentation does not fit the lines above it, or a bracket there is not closed";
const openQuote = "invalid YAML: a closing quote is missing";
const questionMark = "in brackets a string with a question mark needs quotes";
const colon = "invalid YAML: a bracket is not closed, or a string with a colon lacks quotes";
const openBracket = "invalid YAML: a bracket is not closed, or a comma is missing";

class Parser {
  readonly #tokens: readonly Token[];
  readonly #anchors = new Map<string, YamlNode>();
  readonly #prefixes = new Map<string, string>();
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  document(): YamlNode | undefined {
    const isDirected = this.#directives();
    if (this.#at("---")) this.#take();
    else if (isDirected) throw new YamlError(this.#peek().start, "a document with a % line needs a line --- below it");
    else if (this.#at("over")) return undefined;
    if (this.#at("over")) return this.#nothing();
    const node = this.#node({ inBlock: true });
    if (!this.#at("over")) throw new YamlError(this.#peek().start, wrongIndent);
    return node;
  }

  #directives(): boolean {
    let version: string | undefined;
    for (;;) {
      const token = this.#peek();
      if (token.kind === "version") {
        if (version !== undefined) throw new YamlError(token.start, "a second %YAML line");
        ({ version } = token);
        if (!/^0?1\.0?1$/u.test(version)) throw otherVersion(token.start, version);
      } else if (token.kind === "handle") {
        if (this.#prefixes.has(token.handle)) {
          throw new YamlError(token.start, "a second %TAG line for the same handle");
        }
        this.#prefixes.set(token.handle, token.prefix);
      } else {
        return version !== undefined || this.#prefixes.size > 0;
      }
      this.#take();
    }
  }

  /** The current token; a broken one ends the document. */
  #peek(): Token {
    const token = this.#tokens[Math.min(this.#next, this.#tokens.length - 1)] ?? { kind: "over", start: 0 };
    if (token.kind === "broken") throw new YamlError(token.start, token.detail);
    return token;
  }

  #at(kind: Kind): boolean {
    return this.#peek().kind === kind;
  }

  #take(): void {
    this.#next++;
  }

  /** A missing value. */
  #nothing(): YamlNode {
    return { kind: "scalar", start: this.#peek().start, style: "plain", text: "" };
  }

  #node(place: Place): YamlNode {
    const first = this.#peek();
    if (first.kind === "alias") {
      this.#take();
      return { kind: "alias", start: first.start, target: this.#anchors.get(first.name) };
    }
    const named = this.#names();
    if (++this.#depth > maxDepth + 1) throw new YamlError(first.start, tooDeep);
    const node = this.#content(place, named);
    this.#depth--;
    return node;
  }

  /** An anchor and a tag, in any order. */
  #names(): Names {
    let anchor: string | undefined;
    let tag: string | undefined;
    for (;;) {
      const token = this.#peek();
      if (token.kind === "anchor" && anchor === undefined) anchor = token.name;
      else if (token.kind === "tag" && tag === undefined) tag = this.#written(token);
      else return { anchor, tag };
      this.#take();
    }
  }

  #written({ start, handle, suffix }: TagToken): string {
    if (handle === "") return suffix;
    const prefix = this.#prefixes.get(handle) ?? knownPrefixes.get(handle);
    if (prefix === undefined) {
      throw new YamlError(
        start,
        "a tag has a handle that no %TAG line defines; a string that starts with ! needs quotes",
      );
    }
    return prefix + suffix;
  }

  #content({ inBlock, inMap }: Place, { anchor, tag }: Names): YamlNode {
    const token = this.#peek();
    const { kind, start } = token;
    switch (kind) {
      case "scalar":
        this.#take();
        return this.#keep(anchor, {
          kind,
          start,
          style: token.style,
          text: token.text,
          ...(tag !== undefined && { tag }),
        });
      case "[":
        return this.#items(anchor, (items) => this.#listInBrackets(items));
      case "{":
        return this.#entries(anchor, (entries) => this.#mapInBraces(entries));
      case "-":
        if (!inMap) break;
        return this.#items(anchor, (items) => this.#dashes(items, afterDashInMap));
      case "list":
        if (!inBlock) break;
        return this.#items(anchor, (items) => this.#list(items));
      case "map":
        if (!inBlock) break;
        return this.#entries(anchor, (entries) => this.#map(entries));
      default:
    }
    if (anchor === undefined && tag === undefined) throw this.#lost();
    return this.#keep(anchor, { kind: "scalar", start, style: "plain", text: "", ...(tag !== undefined && { tag }) });
  }

  #keep<N extends YamlNode>(anchor: string | undefined, node: N): N {
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    return node;
  }

  /** Registers the anchor before the contents, which may refer to it. */
  #items(anchor: string | undefined, fill: (items: YamlNode[]) => void): YamlNode {
    const items: YamlNode[] = [];
    const node = this.#keep(anchor, { kind: "list", start: this.#peek().start, items });
    fill(items);
    return node;
  }

  #entries(anchor: string | undefined, fill: (entries: Entry[]) => void): YamlNode {
    const entries: Entry[] = [];
    const node = this.#keep(anchor, { kind: "map", start: this.#peek().start, entries });
    fill(entries);
    return node;
  }

  #list(items: YamlNode[]): void {
    this.#take();
    this.#dashes(items, afterDash);
    if (!this.#at("end")) throw this.#lost();
    this.#take();
  }

  #dashes(items: YamlNode[], nothing: ReadonlySet<Kind>): void {
    while (this.#at("-")) {
      this.#take();
      items.push(this.#valueUnless(nothing, { inBlock: true }));
    }
  }

  #map(entries: Entry[]): void {
    this.#take();
    while (this.#at("?")) {
      this.#take();
      const key = this.#valueUnless(afterKey, { inBlock: true, inMap: true });
      entries.push([key, this.#valueOfKey(afterKey, { inBlock: true, inMap: true })]);
    }
    if (!this.#at("end")) throw this.#lost();
    this.#take();
  }

  #listInBrackets(items: YamlNode[]): void {
    this.#inBrackets("]", () => {
      const { kind, start } = this.#peek();
      items.push(kind === "?" ? { kind: "map", start, entries: [this.#pair(afterItem)] } : this.#node({}));
    });
  }

  #mapInBraces(entries: Entry[]): void {
    this.#inBrackets("}", () => {
      entries.push(this.#at("?") ? this.#pair(afterEntry) : [this.#node({}), this.#nothing()]);
    });
  }

  #inBrackets(closing: "]" | "}", readOne: () => void): void {
    this.#take();
    for (let isFirst = true; !this.#at(closing); isFirst = false) {
      if (!isFirst) {
        if (!this.#at(",")) throw this.#lost(openBracket);
        this.#take();
        if (this.#at(closing)) break;
      }
      readOne();
    }
    this.#take();
  }

  #pair(nothing: ReadonlySet<Kind>): Entry {
    this.#take();
    const key = this.#valueUnless(nothing, {});
    return [key, this.#valueOfKey(nothing, {})];
  }

  #valueOfKey(nothing: ReadonlySet<Kind>, place: Place): YamlNode {
    if (!this.#at(":")) return this.#nothing();
    this.#take();
    return this.#valueUnless(nothing, place);
  }

  #valueUnless(nothing: ReadonlySet<Kind>, place: Place): YamlNode {
    return nothing.has(this.#peek().kind) ? this.#nothing() : this.#node(place);
  }

  /** The error for an unexpected token. */
  #lost(detail?: string): YamlError {
    const token = this.#peek();
    const before = this.#tokens[this.#next - 1];
    if (before?.kind === "scalar" && before.end === token.start) {
      // Text directly after a quoted string indicates a missing quote before it.
      if (before.style !== "plain" && token.kind === "scalar") return new YamlError(before.start, openQuote);
      if (before.style === "plain" && token.kind === "?") return new YamlError(before.start, questionMark);
    }
    if (detail !== undefined && token.kind === ":") return new YamlError(token.start, colon);
    return new YamlError(token.start, detail ?? (token.kind === "over" ? openBracket : lostHere));
  }
}

function otherVersion(start: number, version: string): YamlError {
  const line = quote(`%YAML ${version}`);
  return new YamlError(start, `found incompatible YAML document: ${line}; Kubernetes reads 1.1: remove the line`);
}
