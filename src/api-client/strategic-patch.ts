import { isRecord } from "./resource.ts";

/** How the server merges a list: by the value of a key of its items. */
interface ListMerge {
  readonly key: string;
  /** A list in another order says the same. */
  readonly anyOrder?: true;
  /** The whole list replaces the previous one, because several items may have the same key. */
  readonly replace?: true;
}

/** By the field's name. Lists that are not named are atomic on the server too. */
export type MergeKeys = Readonly<Record<string, ListMerge>>;

/**
 * The strategic merge patch that makes `before` into `after`; undefined when there is nothing to change. What is empty
 * (null, no items, no fields) counts as absent: servers leave it out. Pure.
 */
export function strategicPatch(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  mergeKeys: MergeKeys,
): Record<string, unknown> | undefined {
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const old = before[name];
    const wanted = after[name];
    if (isSame(old, wanted)) continue;
    if (isAbsent(wanted)) patch[name] = null;
    else if (isRecord(wanted) && isRecord(old)) patch[name] = strategicPatch(old, wanted, mergeKeys) ?? {};
    else if (Array.isArray(wanted)) addList(patch, name, Array.isArray(old) ? old : [], wanted, mergeKeys[name]);
    else patch[name] = wanted;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function addList(
  patch: Record<string, unknown>,
  name: string,
  before: readonly unknown[],
  after: readonly unknown[],
  merge: ListMerge | undefined,
): void {
  if (merge === undefined) {
    patch[name] = after;
    return;
  }
  if (merge.replace) {
    patch[name] = [...after, { $patch: "replace" }];
    return;
  }
  const { key, anyOrder } = merge;
  const keyOf = (item: unknown): unknown => (isRecord(item) ? item[key] : undefined);
  const wanted = new Set(after.map(keyOf));
  const changed = after.filter((item) => !before.some((old) => keyOf(old) === keyOf(item) && isSame(old, item)));
  const gone = before.map(keyOf).filter((value) => !wanted.has(value));
  if (anyOrder && changed.length === 0 && gone.length === 0) return;
  patch[`$setElementOrder/${name}`] = after.map((item) => ({ [key]: keyOf(item) }));
  patch[name] = [
    ...changed.map((item) =>
      withRemovals(
        before.find((old) => keyOf(old) === keyOf(item)),
        item,
      ),
    ),
    ...gone.map((value) => ({ $patch: "delete", [key]: value })),
  ];
}

/** An item is merged field by field: those that it has no longer are named. */
function withRemovals(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return after;
  const removed = Object.keys(before).filter((name) => !isAbsent(before[name]) && isAbsent(after[name]));
  return { ...after, ...Object.fromEntries(removed.map((name) => [name, null])) };
}

function isAbsent(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isRecord(value) && Object.keys(value).every((name) => isAbsent(value[name]));
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isAbsent(a) || isAbsent(b)) return isAbsent(a) && isAbsent(b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  if (!isRecord(a) || !isRecord(b)) return a === b;
  if (!Object.keys(a).every((name) => isSame(a[name], b[name]))) return false;
  return Object.keys(b).every((name) => Object.hasOwn(a, name) || isAbsent(b[name]));
}
