import { badRequest } from "./api-error.ts";
import { type Draft, type Fields, isFields, type Json, timestamp } from "./objects.ts";
import type { Scalar, Schema } from "./schema.ts";
import { schemas } from "./schemas.ts";

const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/;
const micro = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}(?:Z|[+-]\d{2}:\d{2})$/;
const quantity = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?$/;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

type Check = (value: Json) => boolean;
const isText = (value: Json, pattern: RegExp): boolean => typeof value === "string" && pattern.test(value);

const checks: Readonly<Record<Scalar, Check>> = {
  string: (value) => typeof value === "string",
  integer: (value) => Number.isSafeInteger(value),
  boolean: (value) => typeof value === "boolean",
  time: (value) => isText(value, rfc3339),
  microtime: (value) => isText(value, micro),
  quantity: (value) => typeof value === "number" || isText(value, quantity),
  bytes: (value) => isText(value, base64),
  "integer or string": (value) => typeof value === "string" || Number.isSafeInteger(value),
  any: () => true,
};

export interface Decoded {
  readonly object: Fields;
  /** Paths of unknown members, which are dropped. */
  readonly unknown: readonly string[];
}

class Decoder {
  readonly unknown: string[] = [];
  readonly #type: string;

  /** @param type its name in errors: `Pod in version "v1"` */
  constructor(type: string) {
    this.#type = type;
  }

  decode(value: Json, schema: Schema, path: string): Json {
    if (typeof schema === "string") return this.#scalar(value, schema, path);
    if ("items" in schema) {
      if (!Array.isArray(value)) throw this.#mismatch(value, "list", path);
      return (value as Json[]).map((item, index) => this.decode(item, schema.items, `${path}[${index}]`));
    }
    if (!isFields(value)) throw this.#mismatch(value, "object", path);
    const decoded: Draft = {};
    for (const [name, member] of Object.entries(value)) {
      const inner = path === "" ? name : `${path}.${name}`;
      const known = "values" in schema ? schema.values : schema.members[name];
      // Null means missing.
      if (member === undefined || member === null) continue;
      if (known === undefined) this.unknown.push(inner);
      else decoded[name] = this.decode(member, known, inner);
    }
    return decoded;
  }

  #scalar(value: Json, schema: Scalar, path: string): Json {
    if (!checks[schema](value)) throw this.#mismatch(value, schema, path);
    // Like the real server: UTC, whole seconds.
    return schema === "time" && typeof value === "string" ? timestamp(Date.parse(value)) : value;
  }

  #mismatch(value: Json, wanted: string, path: string): Error {
    const shown = JSON.stringify(value);
    return badRequest(`${this.#type} cannot be handled: ${path} is no ${wanted}: ${shown}`);
  }
}

/**
 * Decodes an object by its schema. Kinds without a schema stay unchanged.
 * @throws ApiError 400 for a member of the wrong type
 */
export function decode(apiVersion: string, kind: string, given: Fields): Decoded {
  const schema = schemas[kind];
  if (schema === undefined) return { object: given, unknown: [] };
  const decoder = new Decoder(`${kind} in version ${JSON.stringify(apiVersion)}`);
  const object = decoder.decode(given, schema, "");
  return { object: isFields(object) ? object : {}, unknown: decoder.unknown };
}
