import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { documentWith, positions, type Position, type Read } from "../../test/support/scalar-positions.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { decodeManifests } from "../sources/decode.ts";
import type { ManifestError } from "./manifest-error.ts";
import { parseDocuments } from "./documents.ts";

/** Kubernetes' result for a scalar at each position: 0 an error, 1 its plain value, null not recorded. */
type Cell = readonly [unknown] | 0 | 1 | null;
type Recorded = readonly [scalar: string, ...cells: Cell[]];

const fixture = new URL("../../test/fixtures/scalars/expected.jsonl", import.meta.url);

test("scalars have the value of Kubernetes' own decoder, in 15 positions", (context) => {
  const lines = readFileSync(process.env.PODWRIGHT_SCALARS ?? fixture, "utf8")
    .trimEnd()
    .split("\n");
  const differing: string[] = [];
  let asked = 0;
  for (const line of lines) {
    const [scalar, ...cells] = JSON.parse(line, exact as (key: string, value: unknown) => unknown) as Recorded;
    const expected = new Map(
      positions.flatMap((position, index) => {
        const cell = cells[index] === 1 ? (cells[0] ?? null) : (cells[index] ?? null);
        return cell === null ? [] : [[position, shown(position, cell)] as const];
      }),
    );
    asked += expected.size;
    for (const [position, found] of readAll(scalar, expected)) {
      const right = expected.get(position) ?? "";
      if (found !== right) differing.push(`${position.name} ${JSON.stringify(scalar)}: ${right}, here ${found}`);
    }
  }
  assert.deepEqual(differing, []);
  context.diagnostic(`${lines.length} scalars, ${asked} values, all equal`);
});

const failed = "an error";

/** podwright's values of a scalar, with as few documents as possible: a rejected one would hide the others. */
function readAll(scalar: string, expected: ReadonlyMap<Position, string>): (readonly [Position, string])[] {
  // A quote would be closed by the next one.
  const isAlone = ({ name }: Position): boolean => name === "quantity" || /^['"]/u.test(scalar);
  const groups = Map.groupBy(
    expected.entries(),
    ([position, right]) =>
      `${position.document} ${right === failed} ${right === failed && isAlone(position) ? position.name : ""}`,
  );
  return [...groups.values()].flatMap((group) =>
    readTogether(
      group.map(([position]) => position),
      scalar,
    ),
  );
}

function readTogether(some: readonly Position[], scalar: string): (readonly [Position, string])[] {
  const text = documentWith(some, scalar);
  const { found, errors } = some[0]?.document === "values" ? valuesOf(text) : manifestOf(text);
  // Broken YAML gives one error, without a field.
  const isBroken = errors.length > 0 && errors.every(({ field }) => field === undefined);
  return some.map((position) => {
    if (isBroken || errors.some(({ field }) => field?.startsWith(position.field))) return [position, failed];
    if (found === undefined) return [position, "nothing"];
    return [position, shown(position, [position.pick(found as Read)])];
  });
}

function valuesOf(text: string): { found: unknown; errors: readonly ManifestError[] } {
  const { documents, errors } = parseDocuments(text, "f");
  return { found: documents[0]?.value, errors };
}

function manifestOf(text: string): { found: unknown; errors: readonly ManifestError[] } {
  const { objects, errors } = decodeManifests(new TextEncoder().encode(text), "f");
  return { found: objects[0]?.manifest, errors };
}

function exact(_key: string, value: unknown, { source }: { readonly source: string }): unknown {
  return typeof value === "number" && /^-?\d+$/u.test(source) && !Number.isSafeInteger(value) ? BigInt(source) : value;
}

function shown(position: Position, cell: readonly [unknown] | 0 | 1): string {
  if (cell === 0 || cell === 1) return failed;
  const [value] = cell;
  if (position.name === "quantity" && value !== null) return quantity(value as string | number);
  return plain(position.name.startsWith("int64") ? nearest(value) : value);
}

function quantity(written: string | number): string {
  try {
    return String(parseQuantity(written));
  } catch {
    return failed;
  }
}

/** An int64 that a number cannot hold exactly is rounded. */
function nearest(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(nearest);
  if (typeof value !== "bigint") return value;
  return value > 0 ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER;
}

/** A whole number is equal as bigint and as float. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (each === 0) return 0;
    const isWhole = typeof each === "bigint" || (typeof each === "number" && Number.isInteger(each));
    return isWhole ? `${each} as a number` : each;
  });
}
