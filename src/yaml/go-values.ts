import * as z from "zod";
import { isWrittenNumber, type WrittenNumber } from "./scalars.ts";

export interface GoValueOptions {
  /** Leaves the nulls of maps where they are: in a merge patch they mean "remove". */
  readonly keepNulls?: boolean;
}

/**
 * What Go's decoder makes of a document's nulls and large numbers, which depends on the type of the field that they are
 * given to. A null leaves a field unset; in a list and in a map of values it is the empty value of the type. Of an
 * integer of 64 bits that a number here can't hold exactly the nearest that it can is as good; a quantity keeps its
 * digits. Gives JSON values, but for what the schema refuses. Changes nothing that it is given.
 */
export function goValues(schema: z.ZodType, value: unknown, options: GoValueOptions = {}): unknown {
  const type = unwrap(schema);
  if (Array.isArray(value)) {
    const item = type instanceof z.ZodArray ? elementOf(type) : undefined;
    return value.map((each) => (each === null ? zeroOf(item) : goValues(item ?? anything, each, options)));
  }
  if (isWrittenNumber(value)) return writtenOf(type, value);
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

/** A type's value when nothing is given; null where it need not be given, or nobody knows it. */
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
  // A text is not what they should be: let the schema say so.
  if (type instanceof z.ZodString) return value;
  // As a float is printed: Go reads an integer from its digits.
  const digits = String(value);
  const whole = digits.includes("e") ? BigInt(value) : BigInt(digits);
  if (whole < minInt64 || whole > maxInt64) return Number(value);
  return Math.min(Math.max(Number(value), Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
}

function writtenOf(type: z.ZodType, written: WrittenNumber): unknown {
  if (type instanceof z.ZodUnion && isQuantity(type)) return written.text;
  // Go takes none of these for an integer, even where their value is one.
  const isWhole = type instanceof z.ZodUnion || (type instanceof z.ZodNumber && type.format !== null);
  return isWhole && /[.eE]/u.test(written.text) ? written : numberOf(type, Number(written.text));
}

/** A number of any kind or a text; an IntOrString has whole numbers only. */
function isQuantity(type: z.ZodUnion): boolean {
  return !type.options.some((option) => option instanceof z.ZodNumber && option.format !== null);
}

function elementOf(type: z.ZodArray): z.ZodType {
  return unwrap(type.element as z.ZodType);
}

/** What is decoded, without what is done to it before or after. */
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
