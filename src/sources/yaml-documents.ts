import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseAllDocuments,
  type Document,
  type ErrorCode,
  type Node,
  type Tags,
  type YAMLMap,
} from "yaml";
import {
  formatPath,
  ManifestError,
  printable,
  quote,
  type FieldPath,
  type Origin,
  type Position,
} from "./manifest-error.ts";

/** One document of a file as plain JSON values, without the nulls of its maps, and where each value stands. */
export interface TextDocument {
  readonly value: unknown;
  readonly origin: Origin;
}

/** Values of a file once its aliases are written out, and levels of nesting. */
const maxValues = 250_000;
const maxDepth = 64;
/** The YAML parser needs a microsecond and more by the token, so their number is bounded as well as the file's size. */
const maxTokens = 500_000;

export interface DocumentOptions {
  /** Leaves the nulls of maps where they are: in a merge patch they mean "remove". */
  readonly keepNulls?: boolean;
  /** Told of a repeated key, of which then the last counts; otherwise that is an error. */
  readonly onRepeatedKey?: (problem: ManifestError) => void;
}

/**
 * Splits a text into its YAML documents (JSON is YAML). Scalars are read as Kubernetes does: YAML 1.1 without
 * timestamps and sexagesimal numbers, so that `yes`, `on` and `0644` mean true, true and 420. A repeated key is an
 * error. Empty documents are left out. A document with an error gives no value and does not hurt the others.
 */
export function parseDocuments(
  text: string,
  file: string,
  options: DocumentOptions = {},
): { documents: TextDocument[]; errors: ManifestError[] } {
  const lines = new LineCounter();
  const errors: ManifestError[] = [];
  const documents: TextDocument[] = [];
  if (hasTooManyTokens(text)) {
    errors.push(new ManifestError({ file }, `holds more than ${maxTokens} YAML tokens; split it into several files`));
    return { documents, errors };
  }
  const budget = { values: maxValues };
  for (const document of parse(text, lines, file, errors)) {
    const problem = document.errors[0] ?? document.warnings[0];
    if (problem !== undefined) {
      // One slip makes a parser report several things: the first is the one to mend.
      errors.push(new ManifestError({ file, position: position(lines, problem.pos[0]) }, describe(problem.code)));
      continue;
    }
    if (document.contents === null) continue;
    const reader = new Reader(budget, options);
    const value = reader.read(document.contents, []);
    for (const { offset, path, detail, repeatedKey } of reader.problems) {
      const field = path.length === 0 ? undefined : formatPath(path);
      const error = new ManifestError({ file, position: position(lines, offset), field }, detail);
      if (repeatedKey && options.onRepeatedKey !== undefined) options.onRepeatedKey(error);
      else errors.push(error);
    }
    if (budget.values < 0) break;
    if (reader.failed || value === null) continue;
    const start = document.contents.range[0];
    documents.push({
      value,
      origin: { file, locate: (path) => position(lines, reader.offsetOf(value, path) ?? start) },
    });
  }
  return { documents, errors };
}

function hasTooManyTokens(text: string): boolean {
  let count = 0;
  for (const _token of new Lexer().lex(text)) if (++count > maxTokens) return true;
  return false;
}

function parse(text: string, lineCounter: LineCounter, file: string, errors: ManifestError[]): Document.Parsed[] {
  try {
    const documents = parseAllDocuments(text, {
      version: "1.1",
      lineCounter,
      prettyErrors: false,
      // Reader finds repeated keys, in linear time.
      uniqueKeys: false,
      customTags: kubernetesTags,
    });
    return Array.isArray(documents) ? documents : [];
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    errors.push(new ManifestError({ file }, "nests too deeply"));
    return [];
  }
}

const unwantedTags = new Set(["timestamp", "binary", "omap", "pairs", "set"]);

/** YAML 1.1's tags as Kubernetes has them: JSON's types and merge keys, no sexagesimal numbers. */
function kubernetesTags(tags: Tags): Tags {
  return tags.filter((tag) => {
    if (typeof tag === "string") return true;
    if ("format" in tag && tag.format === "TIME") return false;
    return !unwantedTags.has(tag.tag.replace("tag:yaml.org,2002:", ""));
  });
}

function position(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

interface Problem {
  readonly offset: number;
  readonly path: FieldPath;
  readonly detail: string;
  readonly repeatedKey: boolean;
}

/** Turns the nodes of one document into values and remembers where each stood. */
class Reader {
  readonly problems: Problem[] = [];
  readonly #budget: { values: number };
  readonly #options: DocumentOptions;
  readonly #anchors = new Map<string, Node>();
  /** Of every map and list made: where its fields or items stand. */
  readonly #offsets = new WeakMap<object, Map<string | number, number>>();
  /** Aliases being written out around the node in hand. */
  #expanding = 0;

  constructor(budget: { values: number }, options: DocumentOptions) {
    this.#budget = budget;
    this.#options = options;
  }

  /** True when the value can't be used. */
  get failed(): boolean {
    return this.problems.some((problem) => !problem.repeatedKey || this.#options.onRepeatedKey === undefined);
  }

  read(node: Node | null, path: FieldPath): unknown {
    if (node === null || this.#budget.values < 0) return null;
    const offset = node.range?.[0] ?? 0;
    if (this.#budget.values-- === 0) {
      this.#fail(offset, path, `holds more than ${maxValues} values once its aliases are written out`);
      return null;
    }
    if (path.length > maxDepth) {
      this.#budget.values = -1;
      this.#fail(offset, path.slice(0, 4), `nests deeper than ${maxDepth} levels`);
      return null;
    }
    if (isAlias(node)) return this.#readAlias(node.source, offset, path);
    if ("anchor" in node && node.anchor !== undefined && this.#expanding === 0) this.#anchors.set(node.anchor, node);
    if (isMap<Node, Node | null>(node)) return this.#readMap(node, path);
    if (isSeq<Node>(node)) {
      const offsets = new Map<string | number, number>();
      const list: unknown[] = [];
      this.#offsets.set(list, offsets);
      for (const [index, item] of node.items.entries()) {
        offsets.set(index, item.range?.[0] ?? offset);
        list.push(this.read(item, [...path, index]));
      }
      return list;
    }
    return isScalar(node) ? node.value : null;
  }

  /** Where the field stands, or the nearest existing field around it; undefined for the root. */
  offsetOf(root: unknown, path: FieldPath): number | undefined {
    let value = root;
    let offset: number | undefined;
    for (const part of path) {
      if (typeof value !== "object" || value === null) break;
      const found = this.#offsets.get(value)?.get(part);
      if (found === undefined) break;
      offset = found;
      value = Reflect.get(value, part);
    }
    return offset;
  }

  #readAlias(name: string, offset: number, path: FieldPath): unknown {
    const target = this.#anchors.get(name);
    if (target === undefined) {
      this.#fail(offset, path, `the alias *${printable(name)} names no anchor above it`);
      return null;
    }
    this.#expanding++;
    try {
      return this.read(target, path);
    } finally {
      this.#expanding--;
    }
  }

  #readMap(node: YAMLMap<Node, Node | null>, path: FieldPath): object {
    const map = {};
    const offsets = new Map<string | number, number>();
    this.#offsets.set(map, offsets);
    const merged: unknown[] = [];
    for (const { key: keyNode, value: valueNode } of node.items) {
      const offset = keyNode.range?.[0] ?? node.range?.[0] ?? 0;
      const key = isScalar(keyNode) ? keyNode.value : this.#keyOfAlias(keyNode);
      if (typeof key === "symbol") {
        merged.push(this.read(valueNode, path));
        continue;
      }
      if (typeof key === "object" && key !== null) {
        this.#fail(offset, path, "a key must be a text, not a map or list");
        continue;
      }
      const name = String(key);
      const field = [...path, name];
      if (offsets.has(name)) this.#fail(offset, field, "is given twice", true);
      // It would change the object that holds it instead of becoming a field.
      if (name === "__proto__") this.#fail(offset, field, "is not an allowed name");
      offsets.set(name, offset);
      const value = this.read(valueNode, field);
      const inMap = String(path.at(-1));
      if (value === null && stringMaps.has(inMap)) Reflect.set(map, name, "");
      else if (value === null && quantityMaps.has(inMap) && path.length > 1) Reflect.set(map, name, "0");
      else if (value !== null || this.#options.keepNulls === true) Reflect.set(map, name, value);
    }
    for (const source of merged.flat()) this.#merge(map, offsets, source, path);
    return map;
  }

  #keyOfAlias(node: Node): unknown {
    if (!isAlias(node)) return node;
    const target = this.#anchors.get(node.source);
    return isScalar(target) ? target.value : node;
  }

  /** `<<: *other`: fields that the map does not give itself; the first of several wins. */
  #merge(map: object, offsets: Map<string | number, number>, source: unknown, path: FieldPath): void {
    if (typeof source !== "object" || source === null) {
      const offset = offsets.values().next().value ?? 0;
      this.#fail(offset, path, "<< takes a map or a list of maps");
      return;
    }
    for (const [name, value] of Object.entries(source)) {
      if (offsets.has(name)) continue;
      offsets.set(name, this.#offsets.get(source)?.get(name) ?? 0);
      Reflect.set(map, name, value);
    }
  }

  #fail(offset: number, path: FieldPath, detail: string, repeatedKey = false): void {
    this.problems.push({ offset, path, detail, repeatedKey });
  }
}

/** Maps from text to text: in them Kubernetes reads null as an empty text, elsewhere as a field that is not there. */
const stringMaps = new Set([
  "labels",
  "annotations",
  "data",
  "stringData",
  "binaryData",
  "nodeSelector",
  "matchLabels",
]);

/** Maps of quantities: in them Kubernetes reads null as zero. */
const quantityMaps = new Set(["limits", "requests", "overhead"]);

const unclear = "is not valid YAML here";
const descriptions: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: "an alias is not well formed; a text that starts with * needs quotes",
  BAD_DIRECTIVE: "a line that starts with % is a YAML directive, and this is none that exists",
  BAD_DQ_ESCAPE: "unknown escape sequence in a double-quoted text; use single quotes for a literal backslash",
  BAD_INDENT: "broken YAML: the indentation does not fit the lines above it, or a bracket there is not closed",
  BAD_SCALAR_START: `a text that starts with ${quote("@")}, ${quote("`")} or another reserved character needs quotes`,
  BLOCK_AS_IMPLICIT_KEY: `broken YAML: a second ": " in one line; put the text in quotes, or mind the indentation`,
  BLOCK_IN_FLOW: "broken YAML: a block inside of [ ] or { }",
  MISSING_CHAR: "broken YAML: a closing quote, a bracket or a separator is missing",
  MULTILINE_IMPLICIT_KEY: `broken YAML: a key must end with ": " on its own line`,
  MULTIPLE_ANCHORS: "broken YAML: two anchors on one value",
  MULTIPLE_TAGS: "broken YAML: two tags on one value",
  KEY_OVER_1024_CHARS: "broken YAML: a key is longer than 1024 characters",
  RESOURCE_EXHAUSTION: "nests too deeply",
  TAB_AS_INDENT: "broken YAML: tabs can't indent; use spaces",
  TAG_RESOLVE_FAILED: "unknown tag; a text that starts with ! needs quotes",
  UNEXPECTED_TOKEN: `broken YAML: this can't stand here; look for a missing ": ", dash, quote or bracket before it`,
};

/** In our own words: the parser's may hold text of the manifest, and so a secret. */
function describe(code: ErrorCode): string {
  return descriptions[code] ?? `broken YAML: ${unclear}`;
}
