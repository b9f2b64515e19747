/** Types of the API's values. */
export type Scalar =
  | "string"
  | "integer"
  | "boolean"
  /** RFC 3339; stored in whole seconds. */
  | "time"
  /** RFC 3339 with microseconds. */
  | "microtime"
  | "quantity"
  /** base64 */
  | "bytes"
  | "integer or string"
  /** Not checked. */
  | "any";

/** The members of an object. */
export interface Members {
  readonly [name: string]: Schema;
}

export type Schema = Scalar | { readonly members: Members } | { readonly items: Schema } | { readonly values: Schema };

export function object(...parts: readonly Members[]): Schema {
  return { members: Object.assign({}, ...parts) as Members };
}

export function list(items: Schema): Schema {
  return { items };
}

export function map(values: Schema): Schema {
  return { values };
}

/** Members of one type: `all("string", "name image")`. */
export function all(schema: Schema, names: string): Members {
  return Object.fromEntries(names.split(" ").map((name) => [name, schema]));
}

export const stringMap = map("string");
export const quantities = map("quantity");

const ownerReference = object(
  all("string", "apiVersion kind name uid"),
  all("boolean", "controller blockOwnerDeletion"),
);

/** meta/v1 ObjectMeta. */
export const objectMeta = object(
  all("string", "name generateName namespace selfLink uid resourceVersion"),
  all("integer", "generation deletionGracePeriodSeconds"),
  all("time", "creationTimestamp deletionTimestamp"),
  all(stringMap, "labels annotations"),
  { ownerReferences: list(ownerReference), finalizers: list("string"), managedFields: "any" },
);

export const objectReference = object(all("string", "kind namespace name uid apiVersion resourceVersion fieldPath"));
export const localReference = object(all("string", "name"));

/** A top-level object: these members, its type and metadata. */
export function kind(...parts: readonly Members[]): Schema {
  return object(all("string", "apiVersion kind"), { metadata: objectMeta }, ...parts);
}
