import { type Fields, isFields, Refusal } from "./values.ts";

/** Merge keys of lists in Pods and Nodes, by path. Other lists are replaced. */
const mergeKeys: Readonly<Record<string, string>> = {
  "status.conditions": "type",
  "status.podIPs": "ip",
  "status.hostIPs": "ip",
  "status.addresses": "type",
  "spec.containers": "name",
  "metadata.ownerReferences": "uid",
};

const orderDirective = "$setElementOrder/";

/** A strategic merge patch, as far as kubelets use it. @throws Refusal (400) for an invalid one */
export function strategicMerge(before: unknown, patch: Fields, path = ""): Fields {
  const merged: Record<string, unknown> = { ...(isFields(before) ? before : {}) };
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith("$")) continue;
    const inside = path === "" ? name : `${path}.${name}`;
    if (value === null) delete merged[name];
    else if (isFields(value)) merged[name] = strategicMerge(merged[name], value, inside);
    else if (Array.isArray(value)) merged[name] = mergeList(merged[name], value, inside, patch[orderDirective + name]);
    else merged[name] = value;
  }
  return merged;
}

function mergeList(before: unknown, patch: readonly unknown[], path: string, order: unknown): unknown[] {
  const key = mergeKeys[path];
  if (key === undefined) return [...patch];
  const items = patch.filter(isFields);
  if (items.length < patch.length) throw new Refusal(400, "BadRequest", `${path}: not a list of objects`);
  if (items.some((item) => item["$patch"] === "replace")) return items.filter((item) => item["$patch"] === undefined);
  const merged = new Map((Array.isArray(before) ? before.filter(isFields) : []).map((item) => [item[key], item]));
  for (const item of items) {
    const id = item[key];
    if (id === undefined) throw new Refusal(400, "BadRequest", `${path}: an item has no ${key}`);
    if (item["$patch"] === "delete") merged.delete(id);
    else merged.set(id, strategicMerge(merged.get(id), item, `${path}[]`));
  }
  if (!Array.isArray(order)) return [...merged.values()];
  const place = new Map(order.filter(isFields).map((item, index) => [item[key], index]));
  // Items that the patch does not name stay in order at the end.
  return [...merged.values()].toSorted(
    (a, b) => (place.get(a[key]) ?? order.length) - (place.get(b[key]) ?? order.length),
  );
}

/** RFC 7386. */
export function mergePatch(before: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const merged: Record<string, unknown> = { ...(isFields(before) ? before : {}) };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}
