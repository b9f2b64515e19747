import { isIpAddress } from "../base/formats.ts";
import type { FlagKind } from "./flag-table.ts";
import { durationProblem, parseGoDuration } from "../base/go-duration.ts";
import { isJsonMap } from "./json.ts";
import { type VersionFlag, versionFlag } from "./version-flag.ts";

/** An invalid value; the message completes `invalid argument "x" for "--flag": `. */
class FlagValueError extends Error {}

/**
 * Parses a flag's text to a JSON value.
 * @param before the value of the flag's earlier occurrence: lists and maps are merged
 * @returns undefined for no change: an empty text keeps an address or reserved memory
 * @throws FlagValueError
 */
export function flagValue(kind: FlagKind, text: string, before: unknown): unknown {
  switch (kind) {
    case "bool":
      return parseBool(text);
    case "int":
      return whole(text, 32n);
    case "long":
      return whole(text, 64n);
    case "duration":
      if (parseGoDuration(text) === undefined) throw new FlagValueError(durationProblem(text));
      return text;
    case "string":
      return text;
    case "ip":
      if (text === "") return before;
      if (!isIpAddress(text)) throw new FlagValueError("expected an IP address");
      return text;
    case "list":
      return [...listOf(before), ...(text === "" ? [] : text.split(","))];
    case "map":
      return { ...mapOf(before), ...pairs(text.split(","), "=") };
    case "labels":
      return { ...mapOf(before), ...labels(text) };
    case "pair":
      return { ...mapOf(before), ...pairs([text], "=") };
    case "thresholds":
      return { ...mapOf(before), ...pairs(text.split(","), "<") };
    case "booleans":
      return { ...mapOf(before), ...booleans(text) };
    case "headers":
      return headers(text, mapOf(before));
    case "taints":
      return items(text).map(taint);
    case "reservedMemory":
      if (text === "") return before;
      return [...listOf(before), ...text.split(";").map(memoryReservation)];
    case "vmodule":
      return [...listOf(before), ...items(text).map(verbosityPattern)];
    case "version":
      return versionFlag(text, before as VersionFlag | undefined, parseBool);
  }
}

/** Go's strconv.ParseBool. */
function parseBool(text: string): boolean {
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
  if (["0", "f", "F", "false", "FALSE", "False"].includes(text)) return false;
  throw new FlagValueError("expected true or false");
}

/** Longer valid texts would only have more leading zeros. */
const longestNumber = 200;
const wholeNumber = /^([+-]?)(0x(?:_?[\da-f])+|0b(?:_?[01])+|0o?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/iu;

/** Go's strconv.ParseInt with base 0. Integers that a number cannot represent are rounded. */
function whole(text: string, bits: bigint): number {
  const match = text.length > longestNumber ? null : wholeNumber.exec(text);
  if (match === null) throw new FlagValueError("expected a whole number");
  const [, sign, digits = ""] = match;
  // A single leading zero means octal, too.
  const amount = BigInt(digits.replaceAll("_", "").replace(/^0(?=\d)/u, "0o"));
  const value = sign === "-" ? -amount : amount;
  const beyond = 1n << (bits - 1n);
  if (value < -beyond || value >= beyond) throw new FlagValueError(`value out of range: it does not fit int${bits}`);
  return Number(value);
}

function listOf(before: unknown): readonly unknown[] {
  return Array.isArray(before) ? before : [];
}

function mapOf(before: unknown): Readonly<Record<string, unknown>> {
  return isJsonMap(before) ? before : {};
}

function items(text: string): string[] {
  return text.split(",").filter((item) => item !== "");
}

function pairs(parts: readonly string[], separator: string): Record<string, string> {
  const entries = parts
    .filter((part) => part !== "")
    .map((part) => {
      const at = part.indexOf(separator);
      if (at < 0) throw new FlagValueError(`malformed pair ${JSON.stringify(part)}, expect key${separator}value`);
      return [part.slice(0, at).trim(), part.slice(at + 1).trim()] as const;
    });
  return Object.fromEntries(entries);
}

function labels(text: string): Record<string, string> {
  const entries = items(text).map((item) => {
    const at = item.indexOf("=");
    return at < 0 ? [item.trim(), ""] : [item.slice(0, at).trim(), item.slice(at + 1).trim()];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}

function booleans(text: string): Record<string, boolean> {
  return Object.fromEntries(Object.entries(pairs(text.split(","), "=")).map(([key, value]) => [key, parseBool(value)]));
}

function headers(text: string, before: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const all: Record<string, unknown> = { ...before };
  for (const part of items(text)) {
    const at = part.indexOf(":");
    // The value may be a secret, so the message omits it.
    if (at < 0) throw new FlagValueError("malformed pair, expect key:value");
    const key = part.slice(0, at).trim();
    all[key] = [...listOf(all[key]), part.slice(at + 1).trim()];
  }
  return all;
}

function taint(text: string): { key: string; value: string; effect: string } {
  const match = /^([^=:]+)(?:=([^:]*))?:([^:]+)$/u.exec(text);
  if (match === null) throw new FlagValueError(`invalid taint spec: ${text}, expect key=value:Effect`);
  const [, key = "", value = "", effect = ""] = match;
  return { key, value, effect };
}

function memoryReservation(text: string): { numaNode: number; limits: Record<string, string> } {
  const match = /^(\d{1,9}):(.+)$/u.exec(text);
  if (match === null) {
    throw new FlagValueError(
      `the reserved memory has incorrect format, expected numaNodeID:type=quantity[,type=quantity...], got ${text}`,
    );
  }
  return { numaNode: Number(match[1]), limits: pairs((match[2] ?? "").split(","), "=") };
}

function verbosityPattern(text: string): { filePattern: string; verbosity: number } {
  const match = /^([^=]+)=(\d{1,9})$/u.exec(text);
  if (match === null) throw new FlagValueError(`${JSON.stringify(text)} does not have the pattern=N format`);
  return { filePattern: match[1] ?? "", verbosity: Number(match[2]) };
}
