import * as z from "zod";
import { EscapedText, isWrittenNumber, type WrittenNumber } from "./scalars.ts";

export interface GoValueOptions {
  /** Keeps nulls in maps: in a merge patch they mean "remove". */
  readonly keepNulls?: boolean;
}

/**
 * Converts nulls and large numbers as Go's decoder does, which depends on the type of the field. A null leaves a field
 * unset; in a list or a map of values it is the type's zero value. A 64-bit integer that a number cannot hold exactly
 * is rounded; a quantity keeps its digits, and its escapes, which it cannot have. Returns JSON values, except for what the schema rejects. Does not modify its
 * input.
 */
export function goValues(schema: z.ZodType, value: unknown, options: GoValueOptions = {}): unknown {
  const type = unwrap(schema);
  if (Array.isArray(value)) {
    const item = type instanceof z.ZodArray ? elementOf(type) : undefined;
    return value.map((each) => (each === null ? zeroOf(item) : goValues(item ?? anything, each, options)));
  }
  if (isWrittenNumber(value)) return writtenOf(type, value);
  if (value instanceof EscapedText) return type instanceof z.ZodUnion && isQuantity(type) ? value.written : value.text;
  if (typeof value === "object" && value !== null) return mapOf(type, value, options);
  if (typeof value === "number" || typeof value === "bigint") return numberOf(type, value);
  return value;
}

const anything = z.unknown();
const minInt64 = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;

function mapOf(type: z.ZodType, map: object, options: GoValueOptions): object {
  const result = {};
  const values = type instanceof z.ZodRecord ? (type.valueType as z.ZodType) : undefined;
  const fields: Readonly<Record<string, z.ZodType>> = type instanceof z.ZodObject ? type.shape : {};
  for (const [name, given] of Object.entries(map)) {
    const field = values ?? (Object.hasOwn(fields, name) ? fields[name] : undefined);
    if (given !== null) Reflect.set(result, name, goValues(field ?? anything, given, options));
    else if (options.keepNulls === true) Reflect.set(result, name, null);
    else if (zeroOf(field) !== null) Reflect.set(result, name, zeroOf(field));
  }
  return result;
}

/** A type's zero value; null where the value is optional or the type unknown. */
function zeroOf(given: z.ZodType | undefined): unknown {
  const schema = given && withoutPipes(given);
  if (schema instanceof z.ZodString) return "";
  if (schema instanceof z.ZodUnion) return isQuantity(schema) ? "0" : 0;
  if (schema instanceof z.ZodNumber) return 0;
  if (schema instanceof z.ZodBoolean) return false;
  if (schema instanceof z.ZodArray) return [];
  return schema instanceof z.ZodObject ? {} : null;
}

function numberOf(type: z.ZodType, value: number | bigint): unknown {
  if (typeof value === "number" && !Number.isInteger(value)) return value;
  if (type instanceof z.ZodUnion && isQuantity(type)) return typeof value === "bigint" ? String(value) : value;
  // A string of another type is left to the schema to reject.
  if (type instanceof z.ZodString) return value;
  // As a float is printed: Go parses an integer from its digits.
  const digits = String(value);
  const whole = digits.includes("e") ? BigInt(value) : BigInt(digits);
  if (whole < minInt64 || whole > maxInt64) return Number(value);
  return Math.min(Math.max(Number(value), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

function writtenOf(type: z.ZodType, written: WrittenNumber): unknown {
  if (type instanceof z.ZodUnion && isQuantity(type)) return written.text;
  // Go accepts none of these as integers, even where their value is one.
  const isWhole = type instanceof z.ZodUnion || (type instanceof z.ZodNumber && type.format !== null);
  return isWhole && /[.eE]/u.test(written.text) ? written : numberOf(type, Number(written.text));
}

/** A number or a string; an IntOrString allows whole numbers only. */
function isQuantity(type: z.ZodUnion): boolean {
  return !type.options.some((option) => option instanceof z.ZodNumber && option.format !== null);
}

function elementOf(type: z.ZodArray): z.ZodType {
  return unwrap(type.element as z.ZodType);
}

/** The decoded type, without transformations before or after it. */
function withoutPipes(schema: z.ZodType): z.ZodType {
  if (!(schema instanceof z.ZodPipe)) return schema;
  const before = schema.in as z.ZodType;
  return withoutPipes(before instanceof z.ZodTransform ? (schema.out as z.ZodType) : before);
}

function unwrap(schema: z.ZodType): z.ZodType {
  const inner = withoutPipes(schema);
  const isWrapped = inner instanceof z.ZodOptional || inner instanceof z.ZodNullable || inner instanceof z.ZodDefault;
  return isWrapped ? unwrap(inner.unwrap() as z.ZodType) : inner;
}
