import { quote, type FieldPath } from "../yaml/manifest-error.ts";
import { placeholderHint } from "../yaml/placeholder.ts";

/** What is wrong with one field, framed as the API server does (apimachinery's field.Error). */
export interface FieldError {
  readonly path: FieldPath;
  readonly detail: string;
}

export function required(path: FieldPath, detail = ""): FieldError {
  return { path, detail: detail === "" ? "Required value" : `Required value: ${detail}` };
}

export function invalid(path: FieldPath, value: string | number | boolean, detail: string): FieldError {
  const hint = typeof value === "string" ? placeholderHint(value) : "";
  return { path, detail: `Invalid value: ${show(value)}: ${detail}${hint}` };
}

export function notSupported(path: FieldPath, value: string, supported: readonly string[]): FieldError {
  const values = supported.map(quote).join(", ");
  return { path, detail: `Unsupported value: ${quote(value)}: supported values: ${values}${placeholderHint(value)}` };
}

export function duplicate(path: FieldPath, value: string | number): FieldError {
  return { path, detail: `Duplicate value: ${show(value)}` };
}

export function forbidden(path: FieldPath, detail: string): FieldError {
  return { path, detail: `Forbidden: ${detail}` };
}

export function notFound(path: FieldPath, value: string): FieldError {
  return { path, detail: `Not found: ${quote(value)}` };
}

export function tooLong(path: FieldPath, limit: string): FieldError {
  return { path, detail: `Too long: may not be more than ${limit}` };
}

function show(value: string | number | boolean): string {
  return typeof value === "string" ? quote(value) : String(value);
}
