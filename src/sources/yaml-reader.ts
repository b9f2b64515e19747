import { isAlias, isMap, isScalar, isSeq, type Alias, type Node, type Scalar, type YAMLMap } from "yaml";
import type { FieldPath } from "./manifest-error.ts";
import { unquote, unquoteSingle } from "./yaml-escapes.ts";
import { keyText, resolvePlain, resolveTagged, ScalarError, type ScalarValue } from "./yaml-scalars.ts";

/** Values of a file once its aliases are written out, and levels of nesting. */
const maxValues = 250_000;
const maxDepth = 64;
const mergeTag = "tag:yaml.org,2002:merge";

/** How many values of a file may still be read. */
export interface Budget {
  values: number;
}

export function fullBudget(): Budget {
  return { values: maxValues };
}

/** The text that a document's offsets count in. */
export interface SourceText {
  readonly text: string;
  /** JSON escapes what YAML 1.1 does not. */
  readonly isJson: boolean;
}

export interface Problem {
  readonly offset: number;
  readonly path: FieldPath;
  readonly detail: string;
  readonly repeatedKey: boolean;
}

const anchorPattern = /^[\w-]+$/u;
const tagPattern = /^[\w;/?:@&=+$.,!~*'()[\]%-]*$/u;

/** Turns the nodes of one document into values and remembers where each stood. */
export class Reader {
  readonly problems: Problem[] = [];
  readonly #budget: Budget;
  readonly #source: SourceText;
  readonly #anchors = new Map<string, Node>();
  /** Of every map and list made: where its fields or items stand. */
  readonly #offsets = new WeakMap<object, Map<string | number, number>>();
  /** Aliases being written out around the node in hand. */
  #expanding = 0;

  constructor(budget: Budget, source: SourceText) {
    this.#budget = budget;
    this.#source = source;
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
    this.#keepAnchor(node, path);
    if (isScalar(node)) return this.#readScalar(node, path);
    if (isMap<Node, Node | null>(node)) return this.#readMap(node, path);
    const offsets = new Map<string | number, number>();
    const list: unknown[] = [];
    if (!isSeq<Node>(node)) return null;
    this.#offsets.set(list, offsets);
    for (const [index, item] of node.items.entries()) {
      offsets.set(index, item.range?.[0] ?? offset);
      list.push(this.read(item, [...path, index]));
    }
    return list;
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

  #keepAnchor(node: Exclude<Node, Alias>, path: FieldPath): void {
    const { anchor } = node;
    if (anchor === undefined || this.#expanding > 0) return;
    this.#anchors.set(anchor, node);
    if (anchorPattern.test(anchor)) return;
    this.#fail(node.range?.[0] ?? 0, path, "an anchor is not well formed; a text that starts with & needs quotes");
  }

  #readAlias(name: string, offset: number, path: FieldPath): unknown {
    const target = this.#anchors.get(name);
    if (target === undefined) {
      // Its name may be a secret that lacks its quotes.
      this.#fail(offset, path, "an alias names no anchor above it; a text that starts with * needs quotes");
      return null;
    }
    this.#expanding++;
    try {
      return this.read(target, path);
    } finally {
      this.#expanding--;
    }
  }

  /** Integers that a number holds exactly are numbers, larger ones bigints. */
  #readScalar(node: Scalar, path: FieldPath): unknown {
    const value = this.#resolve(node, path);
    if (typeof value === "bigint") {
      const rounded = Number(value);
      return Number.isSafeInteger(rounded) ? rounded : value;
    }
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    this.#fail(node.range?.[0] ?? 0, path, "infinities and .nan are no values here; a text needs quotes");
    return null;
  }

  #resolve(node: Scalar, path: FieldPath): ScalarValue {
    const { tag, type } = node;
    if (tag !== undefined && !tagPattern.test(tag)) {
      return this.#fail(node.range?.[0] ?? 0, path, "a tag is not well formed; a text that starts with ! needs quotes");
    }
    if (tag === undefined && type === "PLAIN") {
      const value = resolvePlain(node.source ?? "");
      if (!this.#source.isJson || typeof value !== "string") return value;
      return this.#fail(node.range?.[0] ?? 0, path, "the number is too large");
    }
    return this.#attempt(node, path, () => {
      const text = this.#textOf(node);
      return tag === undefined || tag === "!" ? text : resolveTagged(tag, text);
    });
  }

  #textOf({ source = "", type, range }: Scalar): string {
    if (!range) return source;
    if (type !== "QUOTE_DOUBLE" && type !== "QUOTE_SINGLE") return this.#withoutEnd(source, range[1]);
    const raw = this.#source.text.slice(range[0], range[1]);
    if (this.#source.isJson) return raw.includes("\\") ? String(JSON.parse(raw)).toWellFormed() : source;
    if (!/[\\\u0085\u2028\u2029]/u.test(raw)) return source;
    return type === "QUOTE_DOUBLE" ? unquote(raw) : unquoteSingle(raw);
  }

  /** A block that a text ends in without a break of the line has none at its end, either. */
  #withoutEnd(block: string, end: number): string {
    const { text } = this.#source;
    if (end < text.length || !block.endsWith("\n") || text.endsWith("\n")) return block;
    const lastLine = text.slice(text.lastIndexOf("\n") + 1);
    return lastLine.trim() !== "" || block.endsWith(" \n") ? block.slice(0, -1) : block;
  }

  #attempt<T>(node: Node, path: FieldPath, work: () => T): T | null {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ScalarError)) throw error;
      return this.#fail(node.range?.[0] ?? 0, path, error.message);
    }
  }

  /** Later fields win over earlier ones of a merge key, and it over those above it, as with Kubernetes. */
  #readMap(node: YAMLMap<Node, Node | null>, path: FieldPath): object {
    const map = {};
    const offsets = new Map<string | number, number>();
    this.#offsets.set(map, offsets);
    const given = new Set<string>();
    for (const { key, value } of node.items) {
      if (isMergeKey(key)) {
        this.#merge(map, offsets, key, this.read(value, path), path);
        continue;
      }
      const name = this.#readKey(key, path);
      if (name === null) continue;
      const offset = key.range?.[0] ?? node.range?.[0] ?? 0;
      const field = [...path, name];
      if (given.has(name)) this.#fail(offset, field, "is given twice", true);
      // It would change the object that holds it instead of becoming a field.
      if (name === "__proto__") this.#fail(offset, field, "is not an allowed name");
      given.add(name);
      offsets.set(name, offset);
      Reflect.set(map, name, this.read(value, field));
    }
    return map;
  }

  /** Null when it can be none, which is then said. */
  #readKey(node: Node, path: FieldPath): string | null {
    const target = isAlias(node) ? this.#anchors.get(node.source) : node;
    if (!isScalar(target)) {
      return this.#fail(node.range?.[0] ?? 0, path, "a key must be a text, not a map or list");
    }
    this.#keepAnchor(target, path);
    const problems = this.problems.length;
    const key = this.#resolve(target, path);
    return this.problems.length > problems ? null : this.#attempt(node, path, () => keyText(key));
  }

  /** `<<: *other`, or a list, of which the first counts most. */
  #merge(map: object, offsets: Map<string | number, number>, key: Node, source: unknown, path: FieldPath): void {
    const sources: unknown[] = Array.isArray(source) ? source.toReversed() : [source];
    for (const each of sources) {
      if (typeof each !== "object" || each === null || Array.isArray(each)) {
        this.#fail(key.range?.[0] ?? 0, path, "<< takes a map or a list of maps");
        return;
      }
      for (const [name, value] of Object.entries(each)) {
        offsets.set(name, this.#offsets.get(each)?.get(name) ?? 0);
        Reflect.set(map, name, value);
      }
    }
  }

  #fail(offset: number, path: FieldPath, detail: string, repeatedKey = false): null {
    this.problems.push({ offset, path, detail, repeatedKey });
    return null;
  }
}

function isMergeKey(node: Node): boolean {
  if (!isScalar(node) || node.source !== "<<") return false;
  return node.tag === undefined ? node.type === "PLAIN" : node.tag === mergeTag;
}
