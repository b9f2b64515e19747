import type { FieldPath } from "./manifest-error.ts";
import { unquote, unquoteSingle } from "./escapes.ts";
import { maxDepth, tooDeep, type AliasNode, type MapNode, type ScalarNode, type YamlNode } from "./nodes.ts";
import {
  jsonText,
  keyText,
  resolvePlain,
  resolveTagged,
  ScalarError,
  WrittenNumber,
  type ScalarValue,
} from "./scalars.ts";

/** Maximum number of values in a file, with aliases and merge keys expanded. */
const maxValues = 250_000;
/** Maximum number of characters in strings and names; reachable only with aliases. */
const maxCharacters = 20 * 1024 * 1024;
/** Reading stops after this many problems in a file. */
export const maxProblems = 1000;
/** Longer scalars are decoded once, however many aliases refer to them. */
const longScalar = 64;
/** With these tags `<<` is a merge key even in quotes. */
const mergeTags = new Set(["!", "tag:yaml.org,2002:merge"]);

/** How much of a file may still be read. */
export interface Budget {
  /** Negative: reading stops. */
  values: number;
  characters: number;
}

export function fullBudget(): Budget {
  return { values: maxValues, characters: maxCharacters };
}

export interface Problem {
  readonly offset: number;
  readonly path: FieldPath;
  readonly detail: string;
  readonly repeatedKey: boolean;
}

/** Converts the nodes of one document to values and remembers their positions. */
export class Reader {
  readonly problems: Problem[] = [];
  readonly #budget: Budget;
  /** Problems other than duplicate keys. */
  #wrong = 0;
  /** For every map and list: the offsets of its fields or items. */
  readonly #offsets = new WeakMap<object, Map<string | number, number>>();
  /** Aliases that are being expanded around the current node. */
  readonly #expanding = new Set<YamlNode>();
  /** Decoded long scalars. */
  readonly #resolved = new WeakMap<ScalarNode, ScalarValue>();

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  read(node: YamlNode, path: FieldPath): unknown {
    if (this.#budget.values < 0) return null;
    const { start } = node;
    if (!this.#spend("values", 1, start, path)) return null;
    if (path.length > maxDepth) {
      this.#budget.values = -1;
      return this.#fail(start, path.slice(0, 4), tooDeep);
    }
    switch (node.kind) {
      case "alias":
        return this.#readAlias(node, path);
      case "scalar":
        return this.#readScalar(node, path);
      case "map":
        return this.#readMap(node, path);
      case "list": {
        const list: unknown[] = [];
        this.#offsets.set(list, new Map(node.items.map((item, index) => [index, item.start])));
        for (const [index, item] of node.items.entries()) list.push(this.read(item, [...path, index]));
        return list;
      }
    }
  }

  /** The offset of the field or its nearest existing parent; undefined for the root. */
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

  #readAlias({ start, target }: AliasNode, path: FieldPath): unknown {
    // The alias name may be an unquoted secret.
    if (target === undefined) return this.#fail(start, path, noAnchor);
    if (this.#expanding.has(target)) {
      this.#budget.values = -1;
      return this.#fail(start, path, "nests without end: an alias refers to its own parent");
    }
    this.#expanding.add(target);
    const value = this.read(target, path);
    this.#expanding.delete(target);
    return value;
  }

  #readScalar(node: ScalarNode, path: FieldPath): unknown {
    if (node.style === "json" && !node.text.startsWith('"')) return this.#readWord(node, path);
    const value = exact(this.#resolve(node, path));
    if (node.style === "json" && typeof value === "string") return jsonText(node.text.slice(1, -1), value);
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    return this.#fail(node.start, path, "infinities and .nan are not allowed; a string needs quotes");
  }

  /** A JSON keyword or number. */
  #readWord({ text, start }: ScalarNode, path: FieldPath): unknown {
    const value = exact(resolvePlain(text));
    if (typeof value === "string") return this.#fail(start, path, "the number is too large");
    return typeof value !== "number" || String(value) === text ? value : new WrittenNumber(text);
  }

  #resolve(node: ScalarNode, path: FieldPath): ScalarValue {
    const known = this.#resolved.get(node);
    const value = known ?? this.#attempt(node.start, path, () => valueOf(node));
    if (known === undefined && value !== null && node.text.length > longScalar) this.#resolved.set(node, value);
    return typeof value !== "string" || this.#spend("characters", value.length, node.start, path) ? value : null;
  }

  #attempt<T>(offset: number, path: FieldPath, work: () => T): T | null {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof ScalarError)) throw error;
      return this.#fail(offset, path, error.message);
    }
  }

  /** Explicit fields override a merge key's, and later ones earlier ones, as in Kubernetes. */
  #readMap(node: MapNode, path: FieldPath): object {
    const map = {};
    const offsets = new Map<string | number, number>();
    this.#offsets.set(map, offsets);
    const given = new Set<string>();
    for (const [key, value] of node.entries) {
      if (isMergeKey(key)) {
        this.#merge(map, offsets, value, path);
        continue;
      }
      const name = this.#readKey(key, path);
      if (name === null) continue;
      const field = [...path, name];
      if (given.has(name)) this.#fail(key.start, field, "is a duplicate key", true);
      // It would change the object's prototype instead of becoming a field.
      if (name === "__proto__") this.#fail(key.start, field, "is not an allowed name");
      given.add(name);
      offsets.set(name, key.start);
      Reflect.set(map, name, this.read(value, field));
    }
    return map;
  }

  /** Null, with an error, when it cannot be a key. */
  #readKey(node: YamlNode, path: FieldPath): string | null {
    if (this.#budget.values < 0) return null;
    const target = node.kind === "alias" ? node.target : node;
    if (target === undefined) return this.#fail(node.start, path, noAnchor);
    if (target.kind !== "scalar") return this.#fail(node.start, path, "a key must be a string, not a map or list");
    const problems = this.problems.length;
    const key = this.#resolve(target, path);
    return this.problems.length > problems ? null : this.#attempt(node.start, path, () => keyText(key));
  }

  /** `<<: *other`, or a list of such, where the first takes precedence. */
  #merge(map: object, offsets: Map<string | number, number>, value: YamlNode, path: FieldPath): void {
    for (const node of value.kind === "list" ? value.items.toReversed() : [value]) {
      const source = node.kind === "alias" ? node.target : node;
      if (source?.kind !== "map") {
        this.#fail(value.start, path, source === undefined ? noAnchor : "<< needs a map or a list of maps");
        return;
      }
      const read = this.read(node, path);
      if (typeof read !== "object" || read === null) return;
      const fields = Object.entries(read);
      if (!this.#spend("values", fields.length, node.start, path)) return;
      for (const [name, each] of fields) {
        offsets.set(name, this.#offsets.get(read)?.get(name) ?? source.start);
        Reflect.set(map, name, each);
      }
    }
  }

  /** False when the budget is exceeded: reading then stops. */
  #spend(what: keyof Budget, count: number, offset: number, path: FieldPath): boolean {
    if (this.#budget.values < 0) return false;
    this.#budget[what] -= count;
    if (this.#budget[what] >= 0) return true;
    const most = what === "values" ? maxValues : maxCharacters;
    this.#fail(offset, path, `holds more than ${most} ${what} after alias expansion`);
    this.#budget.values = -1;
    return false;
  }

  #fail(offset: number, path: FieldPath, detail: string, repeatedKey = false): null {
    this.problems.push({ offset, path, detail, repeatedKey });
    if (!repeatedKey && ++this.#wrong > maxProblems) this.#budget.values = -1;
    return null;
  }
}

/** Integers that a number holds exactly become numbers, larger ones stay bigints. */
function exact(value: ScalarValue): ScalarValue {
  if (typeof value !== "bigint") return value;
  const rounded = Number(value);
  return Number.isSafeInteger(rounded) ? rounded : value;
}

const noAnchor = "an alias without an anchor above it; a string that starts with * needs quotes";

function isMergeKey(node: YamlNode): boolean {
  if (node.kind !== "scalar") return false;
  const { style, text, tag } = node;
  if (tag === undefined) return style === "plain" && text === "<<";
  return mergeTags.has(tag) && (style === "double" || style === "single" ? text.slice(1, -1) : text) === "<<";
}

/** @throws ScalarError */
function valueOf({ style, text, tag }: ScalarNode): ScalarValue {
  if (tag === undefined && style === "plain") return resolvePlain(text);
  const written = textOf(style, text);
  return tag === undefined || tag === "!" ? written : resolveTagged(tag, written);
}

/** @throws ScalarError */
function textOf(style: ScalarNode["style"], text: string): string {
  switch (style) {
    case "json":
      return text.includes("\\") ? String(JSON.parse(text)).toWellFormed() : text.slice(1, -1);
    case "double":
      return /[\\\r\n\u0085\u2028\u2029]/u.test(text) ? unquote(text) : text.slice(1, -1);
    case "single":
      return unquoteSingle(text);
    default:
      return text;
  }
}
