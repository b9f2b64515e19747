import type * as z from "zod";
import type { FieldPath } from "../yaml/manifest-error.ts";
import type { FieldError } from "./field-errors.ts";
import type { SchemaError } from "./schema-errors.ts";

/** A value without the fields that its schema does not know; undefined: something else is wrong with it too. Pure. */
export function withoutUnknownFields(value: unknown, { issues }: z.ZodError): unknown {
  let rest = value;
  for (const issue of issues) {
    if (issue.code !== "unrecognized_keys") return undefined;
    const path = issue.path.filter((part) => typeof part !== "symbol");
    for (const key of issue.keys) rest = without(rest, [...path, key]);
  }
  return rest;
}

function without(value: unknown, [field, ...below]: FieldPath): unknown {
  if (typeof value !== "object" || value === null || field === undefined) return value;
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => (index === field ? without(item, below) : item));
  }
  const entries = Object.entries(value).filter(([key]) => key !== field || below.length > 0);
  return Object.fromEntries(entries.map(([key, each]) => [key, key === field ? without(each, below) : each]));
}

/**
 * Whether an error is the effect of an unknown field: what has a wrong name, or stands in a wrong place, is not missing.
 * Pure.
 */
export function isEcho({ path, detail }: FieldError, unknown: readonly SchemaError[]): boolean {
  return unknown.some(({ path: at, meant, hint }) => {
    const around = at.slice(0, -1);
    if (isSame(path, around)) return true;
    if (meant !== undefined) return isSame(path, [...around, meant]);
    return hint !== undefined && path.at(-1) === at.at(-1) && detail.startsWith("Required value");
  });
}

function isSame(a: FieldPath, b: FieldPath): boolean {
  return a.length === b.length && a.every((part, index) => part === b[index]);
}
