/** JSON objects of the API, and access to them without assumptions about their shape. */

/** A JSON value; `undefined`: a missing member. */
export type Json = string | number | boolean | null | readonly Json[] | Fields;

export interface Fields {
  readonly [name: string]: Json | undefined;
}

/** A JSON object under construction. */
export interface Draft {
  [name: string]: Json | undefined;
}

export interface OwnerReference extends Fields {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface ObjectMeta extends Fields {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  /** RFC 3339, whole seconds. */
  readonly creationTimestamp: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
}

/** A stored API object: complete metadata, immutable. */
export interface ApiObject extends Fields {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The member at a path such as `"spec.nodeName"`; undefined if missing. */
export function at(value: Json | undefined, path: string): Json | undefined {
  let found: Json | undefined = value;
  for (const name of path.split(".")) {
    if (!isFields(found)) return undefined;
    found = found[name];
  }
  return found;
}

/** The object at a path, or an empty one. */
export function fieldsAt(value: Json | undefined, path: string): Fields {
  const found = at(value, path);
  return isFields(found) ? found : {};
}

/** The list at a path, or an empty one. */
export function listAt(value: Json | undefined, path: string): readonly Json[] {
  const found = at(value, path);
  return Array.isArray(found) ? (found as readonly Json[]) : [];
}

/** The objects of the list at a path. */
export function itemsAt(value: Json | undefined, path: string): readonly Fields[] {
  return listAt(value, path).filter(isFields);
}

/** The text at a path, or `""`: the API does not distinguish empty from missing. */
export function textAt(value: Json | undefined, path: string): string {
  const found = at(value, path);
  return typeof found === "string" ? found : "";
}

export function numberAt(value: Json | undefined, path: string): number | undefined {
  const found = at(value, path);
  return typeof found === "number" ? found : undefined;
}

/** A copy that may be changed. */
export function draftOf(value: Fields): Draft {
  return structuredClone<Draft>(value);
}

/** The object at a path of a draft; undefined for other values. */
export function draftIn(draft: Fields, path: string): Draft | undefined {
  const found = at(draft, path);
  return isFields(found) ? found : undefined;
}

/** The objects of the list at a path of a draft. */
export function draftsAt(draft: Fields, path: string): readonly Draft[] {
  return itemsAt(draft, path);
}

/** The object of this name in a draft, created if missing. */
export function draftAt(draft: Draft, name: string): Draft {
  const found = draft[name];
  if (isFields(found)) return found;
  const made: Draft = {};
  draft[name] = made;
  return made;
}

/** Freezes a value recursively. */
export function freeze<T extends Json>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const member of Object.values(value)) if (member !== undefined) freeze(member);
    Object.freeze(value);
  }
  return value;
}

/** Whether two JSON values are equal, in any order of members. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item: Json, index) => sameJson(item, b[index] as Json));
  }
  const [left, right] = [a as Fields, b as Fields];
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].every((name) => sameJson(left[name], right[name]));
}

/** A time in the API's format: RFC 3339 with whole seconds. */
export function timestamp(ms: number = Date.now()): string {
  return new Date(ms).toISOString().replace(/\.\d{3}Z$/, "Z");
}
