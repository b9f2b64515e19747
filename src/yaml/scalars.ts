import { isUtf8 } from "node:buffer";
import { float32Text } from "../base/go-float.ts";

/**
 * A scalar as Kubernetes reads it. Numbers with a fraction or an exponent are numbers and integers of up to 64 bits are
 * bigints, so the two stay distinct (`1e3` and `1000` are different keys).
 */
export type ScalarValue = string | boolean | number | bigint | null;

/** A scalar that its tag forbids, or without a JSON value. The message is for the author of the text. */
export class ScalarError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ScalarError";
  }
}

/** A JSON number whose notation matters: a quantity keeps its digits, and an integer has neither `.` nor `e`. */
export class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export function isWrittenNumber(value: unknown): value is WrittenNumber {
  return value instanceof WrittenNumber;
}

/** A JSON string with escapes that may be a quantity: Kubernetes parses quantities without decoding escapes. */
export class EscapedText {
  readonly text: string;
  /** Without its quotes. */
  readonly written: string;

  constructor(text: string, written: string) {
    this.text = text;
    this.written = written;
  }
}

/** How quantities begin, after space. */
const quantityStart = /^\s*[-+.\d]/u;

/** The value of a JSON string. */
export function jsonText(written: string, text: string): string | EscapedText {
  return written.includes("\\") && quantityStart.test(text) ? new EscapedText(text, written) : text;
}

const tagPrefix = "tag:yaml.org,2002:";

/**
 * The value of an unquoted scalar, by YAML 1.1 as Kubernetes' parser implements it (sigs.k8s.io/yaml over go-yaml 2):
 * without sexagesimal numbers, with timestamps as strings, and also with the octal numbers of YAML 1.2 and Go.
 * @param text folded, without surrounding space
 */
export function resolvePlain(text: string): ScalarValue {
  switch (text.charCodeAt(0)) {
    case 0x2b: // +
    case 0x2d: // -
      return words.get(text) ?? number(text) ?? text;
    case 0x2e: // .
      return words.get(text) ?? fraction(text) ?? text;
    default:
      if (isDigit(text.charCodeAt(0))) return number(text) ?? text;
      // No keyword is longer.
      return text.length <= 5 && words.has(text) ? (words.get(text) ?? null) : text;
  }
}

/**
 * The value of a scalar with a tag, quoted or not. Unknown tags leave strings unchanged.
 * @param tag in full, e.g. `tag:yaml.org,2002:int`
 * @throws ScalarError
 */
export function resolveTagged(tag: string, text: string): ScalarValue {
  const name = tag.startsWith(tagPrefix) ? tag.slice(tagPrefix.length) : "";
  switch (name) {
    case "int":
    case "float":
    case "bool":
    case "null":
      return typed(name, text);
    case "binary":
      return binaryText(text);
    case "timestamp":
      if (isTimestamp(text)) return text;
      throw unfit(name);
    default:
      return text;
  }
}

/**
 * A map key as Kubernetes prints it. Floats are printed with 32 bits.
 * @throws ScalarError
 */
export function keyText(key: ScalarValue): string {
  switch (typeof key) {
    case "string":
      return key;
    case "number":
      return float32Text(key);
    case "bigint":
      if (key <= maxInt64) return String(key);
      throw new ScalarError("a key that is a number must fit 64 bits; put it in quotes");
    case "boolean":
      return String(key);
    default:
      throw new ScalarError('a key must be a string, not nothing; an empty one is ""');
  }
}

const words = new Map<string, ScalarValue>(
  (
    [
      [true, "y Y yes Yes YES true True TRUE on On ON"],
      [false, "n N no No NO false False FALSE off Off OFF"],
      [null, "~ null Null NULL"],
      [Number.NaN, ".nan .NaN .NAN"],
      [Infinity, ".inf .Inf .INF +.inf +.Inf +.INF"],
      [-Infinity, "-.inf -.Inf -.INF"],
    ] as const
  ).flatMap(([value, texts]) => texts.split(" ").map((text) => [text, value] as const)),
).set("", null);

const maxInt64 = 2n ** 63n - 1n;
const minInt64 = -(2n ** 63n);
const maxUint64 = 2n ** 64n - 1n;

const integerPattern = /^[-+]?(?:0[xX]0*([0-9a-fA-F]{1,16})|0[bB]0*([01]{1,64})|0[oO]?0*([0-7]{1,22})|([0-9]{1,20}))$/u;
/** Kubernetes' parser strips the prefix and parses the rest, so `0b-1` is a number. */
const oddBinaryPattern = /^0b([-+])0*([01]{1,64})$/u;
const floatPattern = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/u;
/** In fractions, underscores are allowed only between digits. */
const fractionPattern = /^\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?$/u;

/** Undefined when it is not a number, or one that is out of range for a 64-bit float. */
function number(text: string): number | bigint | undefined {
  const plain = text.includes("_") ? text.replaceAll("_", "") : text;
  return integer(plain) ?? (floatPattern.test(plain) ? finite(plain) : oddBinary(plain));
}

function integer(text: string): bigint | undefined {
  const match = integerPattern.exec(text);
  if (match === null) return undefined;
  const [, hexadecimal, binary, octal, decimal] = match;
  if (decimal !== undefined && decimal.length > 1 && decimal.startsWith("0")) return undefined;
  const magnitude =
    hexadecimal !== undefined
      ? BigInt(`0x${hexadecimal}`)
      : binary !== undefined
        ? BigInt(`0b${binary}`)
        : BigInt(octal === undefined ? (decimal ?? "0") : `0o${octal}`);
  return inRange(magnitude, text[0] ?? "");
}

/** Unsigned up to 64 bits, signed up to 63. */
function inRange(magnitude: bigint, sign: string): bigint | undefined {
  if (sign === "-") return -magnitude >= minInt64 ? -magnitude : undefined;
  return magnitude <= (sign === "+" ? maxInt64 : maxUint64) ? magnitude : undefined;
}

function oddBinary(text: string): bigint | undefined {
  const [, sign = "", digits] = oddBinaryPattern.exec(text) ?? [];
  return digits === undefined ? undefined : inRange(BigInt(`0b${digits}`), sign);
}

function fraction(text: string): number | undefined {
  return fractionPattern.test(text) ? finite(text.replaceAll("_", "")) : undefined;
}

function finite(text: string): number | undefined {
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

function typed(name: "int" | "float" | "bool" | "null", text: string): ScalarValue {
  const value = resolvePlain(text);
  switch (name) {
    case "int":
      if (typeof value === "bigint") return value;
      break;
    case "float":
      if (typeof value === "number") return value;
      if (typeof value === "bigint" && value <= maxInt64) return Number(value);
      break;
    case "bool":
      if (typeof value === "boolean") return value;
      break;
    case "null":
      if (value === null) return value;
  }
  throw unfit(name);
}

function unfit(name: string): ScalarError {
  return new ScalarError(`the value does not match its tag !!${name}`);
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;

function binaryText(text: string): string {
  const base64 = text.replaceAll(/[\r\n]/gu, "");
  if (!base64Pattern.test(base64)) throw new ScalarError("the tag !!binary needs base64");
  return utf8Text(Buffer.from(base64, "base64"));
}

/** As Go's JSON: each invalid UTF-8 byte becomes a replacement character. */
function utf8Text(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString("utf8");
  let text = "";
  for (let start = 0; start < bytes.length;) {
    const lead = bytes[start] ?? 0;
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const character = bytes.subarray(start, start + length);
    const isCharacter = character.length === length && isUtf8(character);
    text += isCharacter ? character.toString("utf8") : "\ufffd";
    start += isCharacter ? length : 1;
  }
  return text;
}

const datePattern = /^(\d{4})-(\d{1,2})-(\d{1,2})/u;
const timePattern =
  /^(?:| +(\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d{1,9})?|[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d{1,9})?(?:Z|[-+](\d\d):(\d\d)))$/u;

function isTimestamp(text: string): boolean {
  const [date, year = "", monthText = "", dayText = ""] = datePattern.exec(text) ?? [];
  const time = date === undefined ? null : timePattern.exec(text.slice(date.length));
  if (time === null) return false;
  const limits = [23, 59, 59, 23, 59, 59, 24, 60];
  const [month, day] = [Number(monthText), Number(dayText)];
  const isDay = month >= 1 && month <= 12 && day >= 1 && day <= daysIn(Number(year), month);
  return isDay && limits.every((limit, index) => Number(time[index + 1] ?? 0) <= limit);
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
