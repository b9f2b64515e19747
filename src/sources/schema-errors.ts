import * as z from "zod";
import { quote, type FieldPath } from "../yaml/manifest-error.ts";
import { placeholderHint } from "../yaml/placeholder.ts";
import { didYouMean } from "../base/did-you-mean.ts";
import { isWrittenNumber } from "../yaml/scalars.ts";

/** One field that does not fit the schema, in words for the author of the manifest. */
export interface SchemaError {
  readonly path: FieldPath;
  readonly detail: string;
  /** Of an unknown field: the known one beside it that is meant. */
  readonly meant?: string;
  /** Of an unknown field: what to do about it. */
  readonly hint?: string;
}

/** What to do about a field that the schema does not know at a path; undefined: no more than its spelling says. */
export type FieldHint = (
  path: FieldPath,
  field: string,
) => { readonly hint: string; readonly meant?: string } | undefined;

/**
 * Says in our own words what a schema found wrong with `value`. Names types and field names only, never the value of a
 * text or number: it may be a secret.
 */
export function describeSchemaErrors(
  schema: z.ZodType,
  value: unknown,
  error: z.ZodError,
  hint: FieldHint = () => undefined,
): SchemaError[] {
  const errors = error.issues.flatMap((issue) => describeIssue(schema, value, issue, hint));
  // One slip is one error: what goes by a wrong name is not missing.
  const meant = new Set(errors.flatMap(({ path, meant: name }) => (name ? [keyOf([...path.slice(0, -1), name])] : [])));
  return errors.filter(({ path, detail }) => !detail.startsWith("Required value") || !meant.has(keyOf(path)));
}

function describeIssue(schema: z.ZodType, root: unknown, issue: z.core.$ZodIssue, hintOf: FieldHint): SchemaError[] {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const value = valueAt(root, path);
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => unknownField(schema, path, key, hintOf(path, key)));
    case "invalid_value": {
      const allowed = issue.values.map((each) => quote(String(each))).join(", ");
      if (value === undefined) return [{ path, detail: `Required value: one of ${allowed}` }];
      if (typeof value !== "string") return [{ path, detail: `expected one of ${allowed}, got ${typeName(value)}` }];
      const meant = didYouMean(value, issue.values.map(String));
      const hint = meant === undefined ? placeholderHint(value) : `; did you mean ${quote(meant)}?`;
      return [{ path, detail: `Unsupported value: ${quote(value)}: supported values: ${allowed}${hint}` }];
    }
    case "invalid_type":
      if (value === undefined) return [{ path, detail: "Required value" }];
      return [{ path, detail: wrongType(expectedName(issue.expected), value) }];
    case "too_big":
    case "too_small":
      return [{ path, detail: "the number exceeds 64 bits" }];
    case "invalid_union":
      if (value === undefined) return [{ path, detail: "Required value" }];
      return [{ path, detail: wrongType("a string or a number", value) }];
    case "invalid_format":
    case "custom":
      return [{ path, detail: issue.message }];
    default:
      return [{ path, detail: "is invalid" }];
  }
}

function wrongType(expected: string, value: unknown): string {
  return `expected ${expected}, got ${typeName(value)}${quotingHint(expected, value)}`;
}

function quotingHint(expected: string, value: unknown): string {
  if (typeof value === "string") return isQuoted(expected, value) ? "; leave out the quotes" : placeholderHint(value);
  if (expected !== "a string") return "";
  if (typeof value === "boolean") return "; put it in quotes (plain yes, no, on, off, y and n are booleans in YAML)";
  return typeof value === "number" || typeof value === "bigint" ? "; put it in quotes" : "";
}

/** Whether the text would be what is expected, were it not a text. */
function isQuoted(expected: string, value: string): boolean {
  if (/number/u.test(expected)) return value.trim() !== "" && !Number.isNaN(Number(value));
  return /true/u.test(expected) && /^(?:true|false)$/u.test(value);
}

function unknownField(schema: z.ZodType, path: FieldPath, key: string, hint: ReturnType<FieldHint>): SchemaError {
  const here = [...path, key];
  const problem = `unknown field ${quote(key)}`;
  if (hint !== undefined) return { path: here, detail: `${problem}: ${hint.hint}`, ...hint };
  const meant = didYouMean(key, knownFields(schema, path));
  if (meant === undefined) return { path: here, detail: problem };
  return { path: here, detail: `${problem}; did you mean ${quote(meant)}?`, meant };
}

function keyOf(path: FieldPath): string {
  return JSON.stringify(path);
}

/** The names that the schema has at a path. */
function knownFields(schema: z.ZodType, path: FieldPath): string[] {
  let here: unknown = schema;
  for (const part of path) {
    here = unwrap(here);
    if (here instanceof z.ZodObject) here = (here.shape as Record<string, unknown>)[String(part)];
    else if (here instanceof z.ZodArray) here = here.element;
    else if (here instanceof z.ZodRecord) here = here.valueType;
    else return [];
  }
  here = unwrap(here);
  return here instanceof z.ZodObject ? Object.keys(here.shape) : [];
}

function unwrap(schema: unknown): unknown {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault ? unwrap(schema.unwrap()) : schema;
}

/** The value at a path; undefined when something on the way is missing. */
export function valueAt(root: unknown, path: FieldPath): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

function expectedName(expected: string): string {
  switch (expected) {
    case "object":
    case "record":
      return "a map";
    case "array":
      return "a list";
    case "string":
      return "a string";
    case "int":
      return "a whole number";
    case "number":
      return "a number";
    case "boolean":
      return "true or false";
    default:
      return `a ${expected}`;
  }
}

/** What a value is, in YAML's words. */
export function typeName(value: unknown): string {
  if (value === null) return "nothing";
  if (Array.isArray(value)) return "a list";
  if (isWrittenNumber(value)) return "a number with a fraction or an exponent";
  switch (typeof value) {
    case "object":
      return "a map";
    case "string":
      return "a string";
    case "boolean":
      return "a boolean";
    case "bigint":
      return "a number";
    case "number":
      return Number.isInteger(value) ? "a number" : "a number with a fraction";
    default:
      return "nothing";
  }
}
