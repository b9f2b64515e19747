/** JSON operations for merging files and flags. None changes its arguments. */

export type JsonMap = Readonly<Record<string, unknown>>;

export function isJsonMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** JSON merge patch (RFC 7386): maps merge, null removes, anything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJsonMap(patch)) return patch;
  const merged = new Map(Object.entries(isJsonMap(target) ? target : {}));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

/** The value at a dotted path (`logging.verbosity`); undefined if it or a parent is missing. */
export function valueAt(root: unknown, path: string): unknown {
  let value = root;
  for (const part of path.split(".")) {
    if (!isJsonMap(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** A copy with the value at a dotted path replaced. */
export function withValueAt(root: JsonMap, path: string, value: unknown): JsonMap {
  const [first = "", ...rest] = path.split(".");
  if (rest.length === 0) return { ...root, [first]: value };
  const inner = root[first];
  return { ...root, [first]: withValueAt(isJsonMap(inner) ? inner : {}, rest.join("."), value) };
}

/** A copy without the value at a path; values below a list stay. */
export function withoutPath(root: JsonMap, path: readonly string[]): JsonMap {
  const [first = "", ...rest] = path;
  const { [first]: inner, ...others } = root;
  if (rest.length === 0) return others;
  return isJsonMap(inner) ? { ...root, [first]: withoutPath(inner, rest) } : root;
}
