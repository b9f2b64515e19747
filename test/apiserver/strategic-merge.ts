import { ApiError, badRequest } from "./api-error.ts";
import { mergeKeyOf } from "./merge-keys.ts";
import { type Draft, type Fields, isFields, type Json, sameJson } from "./objects.ts";

const setElementOrder = "$setElementOrder/";
const deleteFromPrimitiveList = "$deleteFromPrimitiveList/";

/**
 * Kubernetes' strategic merge patch: RFC 7386, except that lists of known types are merged by a key, and members with
 * `$` direct the merge (sig-api-machinery/strategic-merge-patch.md).
 * @param kind the object's kind, which determines the lists' keys
 */
export function strategicMerge(kind: string, original: Fields, patch: Fields): Fields {
  return mergeFields(kind, "", original, patch);
}

function mergeFields(kind: string, path: string, original: Fields, patch: Fields): Fields {
  const directive = patch["$patch"];
  if (directive === "replace") return withoutDirectives(patch);
  if (directive === "delete") return {};
  if (directive !== undefined && directive !== "merge") {
    throw badRequest(`Unknown patch type found: ${JSON.stringify(directive)}`);
  }
  const retained = patch["$retainKeys"];
  const merged: Draft = Array.isArray(retained)
    ? Object.fromEntries(Object.entries(original).filter(([name]) => (retained as Json[]).includes(name)))
    : { ...original };
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined || name.startsWith("$")) continue;
    if (value === null) delete merged[name];
    else {
      const removed = patch[deleteFromPrimitiveList + name];
      merged[name] = mergeMember(kind, path === "" ? name : `${path}.${name}`, merged[name], value, removed);
    }
  }
  removeFromPrimitiveLists(merged, patch);
  orderLists(kind, path, merged, original, patch);
  return merged;
}

function mergeMember(
  kind: string,
  path: string,
  original: Json | undefined,
  patch: Json,
  deleted: Json | undefined,
): Json {
  if (isFields(patch)) return mergeFields(kind, path, isFields(original) ? original : {}, patch);
  if (!Array.isArray(patch)) return patch;
  const rule = mergeKeyOf(kind, path);
  const items = patch as Json[];
  if (rule === undefined) return items.map(withoutDirectives);
  const old = Array.isArray(original) ? (original as Json[]) : [];
  if (rule.key === undefined) {
    const removed = Array.isArray(deleted) ? (deleted as Json[]) : [];
    return [...old, ...items.filter((item) => !old.includes(item) && !removed.includes(item))];
  }
  return mergeList(kind, path, rule.key, old.filter(isFields), items);
}

function mergeList(kind: string, path: string, key: string, old: readonly Fields[], patch: readonly Json[]): Json[] {
  const items = patch.filter(isFields);
  if (items.length !== patch.length) throw badRequest(`${path}: a list of objects is merged with something else`);
  // An item `$patch: replace` makes the other items replace the list.
  if (items.some((item) => item["$patch"] === "replace" && item[key] === undefined)) {
    return items.filter((item) => item["$patch"] === undefined).map(withoutDirectives);
  }
  let merged: Fields[] = [...old];
  for (const item of items) {
    const id = item[key];
    if (id === undefined) throw badRequest(`${path}: map does not contain declared merge key: ${key}`);
    const index = merged.findIndex((each) => sameJson(each[key], id));
    if (item["$patch"] === "delete") {
      merged = merged.filter((each) => !sameJson(each[key], id));
    } else if (index === -1) {
      merged.push(mergeFields(kind, path, {}, item));
    } else {
      merged[index] = mergeFields(kind, path, merged[index] ?? {}, item);
    }
  }
  return merged;
}

function removeFromPrimitiveLists(merged: Draft, patch: Fields): void {
  for (const [directive, removed] of Object.entries(patch)) {
    if (!directive.startsWith(deleteFromPrimitiveList) || !Array.isArray(removed)) continue;
    const name = directive.slice(deleteFromPrimitiveList.length);
    const list = merged[name];
    if (Array.isArray(list)) merged[name] = (list as Json[]).filter((item) => !(removed as Json[]).includes(item));
  }
}

/** A patch's items must be in its own requested order. @throws ApiError 500, like the real server */
function requireOrder(name: string, patched: Json | undefined, position: (item: Json) => number): void {
  if (!Array.isArray(patched)) return;
  const brought = (patched as Json[]).filter((item) => !isFields(item) || item["$patch"] === undefined);
  const positions = brought.map(position);
  const isOrdered = positions.every((each, index) => each !== -1 && each >= (positions[index - 1] ?? 0));
  if (!isOrdered) throw new ApiError(500, "", `The order in patch list ${name} doesn't match $setElementOrder list`);
}

/** Orders lists by `$setElementOrder/…`; unnamed items stay with their neighbours. */
function orderLists(kind: string, path: string, merged: Draft, original: Fields, patch: Fields): void {
  for (const [directive, order] of Object.entries(patch)) {
    if (!directive.startsWith(setElementOrder) || !Array.isArray(order)) continue;
    const name = directive.slice(setElementOrder.length);
    const list = merged[name];
    if (!Array.isArray(list)) continue;
    const key = mergeKeyOf(kind, path === "" ? name : `${path}.${name}`)?.key;
    const idOf = (item: Json): Json | undefined => (key !== undefined && isFields(item) ? item[key] : item);
    const position = (items: readonly Json[], item: Json): number =>
      items.findIndex((each) => sameJson(idOf(each), idOf(item)));
    const before = Array.isArray(original[name]) ? (original[name] as Json[]) : [];
    const wanted = order as Json[];
    requireOrder(name, patch[name], (item) => position(wanted, item));
    const listed = (list as Json[])
      .filter((item) => position(wanted, item) !== -1)
      .toSorted((a, b) => position(wanted, a) - position(wanted, b));
    const others = (list as Json[]).filter((item) => position(wanted, item) === -1);
    const ordered: Json[] = [];
    for (const item of listed) {
      const index = position(before, item);
      while (index !== -1 && others[0] !== undefined && position(before, others[0]) < index) {
        ordered.push(others.shift() as Json);
      }
      ordered.push(item);
    }
    merged[name] = [...ordered, ...others];
  }
}

/** A patch's value for a missing member: without directives and removals. */
function withoutDirectives<T extends Json>(value: T): T {
  if (Array.isArray(value)) return (value as Json[]).map(withoutDirectives) as unknown as T;
  if (!isFields(value)) return value;
  const kept = Object.entries(value).filter(([name, each]) => !name.startsWith("$") && each !== null);
  return Object.fromEntries(kept.map(([name, each]) => [name, withoutDirectives(each as Json)])) as unknown as T;
}
