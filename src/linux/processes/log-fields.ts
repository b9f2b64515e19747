import type { LogFields } from "../../ports/log.ts";

const masked = "[redacted]";

/** Limits of one field, so that no pod can fill the log with one line. */
const longestText = 4_096;
const mostItems = 50;
const deepest = 5;

const secretName =
  /(?:password|passwd|passphrase|secret|token|authorization|cookie|apikey|privatekey|accesskey|credentials?|dockercfg|dockerconfigjson|^auth)$/;

/** Environments: a variable's name does not show whether it is secret. */
const environmentName = /^(?:env|envs|environment)$/;

/** Names that the log line itself uses. */
const reservedNames = new Set(["level", "time", "msg"]);

/** Errors that indicate a defect of podwright: only these get a stack. */
const defects = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError", "AssertionError"]);

/**
 * Prepares fields for writing: masks likely secrets (by name, also in nested objects; data of Secrets; credentials in
 * URLs), writes errors as their name, message, code and cause, and bounds everything in length, number and depth.
 */
export function loggableFields(fields: LogFields): Record<string, unknown> {
  const lineName = (name: string): string => (reservedNames.has(name) ? `${name}_` : name);
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [lineName(name), loggableField(name, value, 0)]),
  );
}

/** Text without credentials of URLs and HTTP headers, truncated. */
export function loggableText(text: string): string {
  const bounded = text.length <= longestText ? text : `${text.slice(0, longestText)}… (${text.length} characters)`;
  return bounded
    .replaceAll(/(:\/\/)[^/?#@\s]+@/g, `$1${masked}@`)
    .replaceAll(/\b(Bearer|Basic) +[A-Za-z0-9._~+/=-]{8,}/gi, `$1 ${masked}`);
}

function loggableField(name: string, value: unknown, depth: number): unknown {
  const plainName = name.toLowerCase().replaceAll(/[-_.]/g, "");
  const isFlag = value === null || value === undefined || typeof value === "boolean";
  if (!isFlag && (secretName.test(plainName) || environmentName.test(plainName))) return masked;
  return loggable(value, depth);
}

function loggable(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return loggableText(value);
    case "bigint":
      return value.toString();
    case "number":
      // JSON has neither infinities nor NaN.
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "object":
      return value === null ? null : loggableObject(value, depth);
    case "undefined":
    case "function":
    case "symbol":
      return undefined;
  }
}

function loggableObject(value: object, depth: number): unknown {
  if (value instanceof Error) return loggableError(value, depth);
  if (value instanceof Uint8Array) return `${value.length} bytes`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (depth >= deepest) return "…";
  if (value instanceof Map) return loggableObject(objectOf(value), depth);
  if (Array.isArray(value) || value instanceof Set) return loggableItems([...value], depth);

  const entries = Object.entries(value);
  const isSecret = "kind" in value && value.kind === "Secret";
  const isSecretVariable = "name" in value && typeof value.name === "string" && "value" in value;
  const hidden = isSecret ? ["data", "stringData"] : isSecretVariable ? ["value"] : [];
  // `$typeName` and `$unknown` of protobuf messages are not data.
  const shown = entries.filter(([name]) => !name.startsWith("$")).slice(0, mostItems);
  return Object.fromEntries(
    shown.map(([name, inner]) => [name, hidden.includes(name) ? masked : loggableField(name, inner, depth + 1)]),
  );
}

function objectOf(map: ReadonlyMap<unknown, unknown>): object {
  return Object.fromEntries([...map].map(([key, value]) => [String(key), value]));
}

function loggableItems(items: readonly unknown[], depth: number): unknown[] {
  const shown = items.slice(0, mostItems).map((item) => loggable(item, depth + 1));
  return items.length > mostItems ? [...shown, `… (${items.length} items)`] : shown;
}

function loggableError(error: Error, depth: number): Record<string, unknown> {
  const { name, message, stack, cause } = error;
  return {
    type: name,
    message: loggableText(message),
    ...("code" in error && { code: loggable(error.code, deepest) }),
    ...("remedy" in error && { remedy: loggable(error.remedy, deepest) }),
    ...(defects.has(name) && stack !== undefined && { stack: loggableText(stack) }),
    ...(cause !== undefined && depth < deepest && { cause: loggable(cause, depth + 1) }),
  };
}
