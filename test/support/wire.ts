import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

type Value = bigint | Uint8Array;
type Fields = ReadonlyMap<number, readonly Value[]>;

/** The fields of a protobuf message of unknown type; undefined if invalid. */
function fieldsOf(bytes: Uint8Array): Fields | undefined {
  const fields = new Map<number, Value[]>();
  try {
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const [number, type] = reader.tag();
      if (type !== WireType.Varint && type !== WireType.LengthDelimited) return undefined;
      const value = type === WireType.Varint ? BigInt(reader.uint64()) : reader.bytes();
      fields.set(number, [...(fields.get(number) ?? []), value]);
    }
    return fields;
  } catch {
    return undefined;
  }
}

/**
 * The content of `theirs` that `ours` lacks, by path of field numbers; empty if equal. Ignores that Go encodes empty
 * fields.
 */
export function wireDifferences(ours: Uint8Array, theirs: Uint8Array, path = ""): string[] {
  if (Buffer.compare(ours, theirs) === 0) return [];
  const [own, other] = [fieldsOf(ours), fieldsOf(theirs)];
  if (own === undefined || other === undefined) return [`${path}: ${text(ours)} instead of ${text(theirs)}`];
  return [...new Set([...own.keys(), ...other.keys()])].flatMap((number) => {
    const [mine, wanted] = [own.get(number) ?? [], other.get(number) ?? []];
    const place = `${path}/${number}`;
    if (mine.length === 0 && wanted.every(isNothing)) return [];
    if (mine.length !== wanted.length) return [`${place}: ${mine.length} values instead of ${wanted.length}`];
    return sorted(mine).flatMap((value, index) => {
      const expected = sorted(wanted)[index] ?? 0n;
      if (typeof value !== "bigint" && typeof expected !== "bigint") return wireDifferences(value, expected, place);
      return value === expected ? [] : [`${place}: ${String(value)} instead of ${String(expected)}`];
    });
  });
}

/** Sorted, because maps are unordered; lists lose only their order. */
function sorted(values: readonly Value[]): readonly Value[] {
  if (values.some((value) => typeof value === "bigint")) return values;
  const keyed = values.map((value) => [keyOf(value), value] as const);
  return keyed.every(([key]) => key !== undefined)
    ? keyed.toSorted(([a = ""], [b = ""]) => (a < b ? -1 : 1)).map(([, value]) => value)
    : values;
}

function keyOf(value: Value): string | undefined {
  const [first] = typeof value === "bigint" ? [] : (fieldsOf(value)?.get(1) ?? []);
  return first === undefined || typeof first === "bigint" ? undefined : text(first);
}

function isNothing(value: Value): boolean {
  if (typeof value === "bigint") return value === 0n;
  return value.length === 0 || [...(fieldsOf(value)?.values() ?? [[1n]])].every((values) => values.every(isNothing));
}

function text(bytes: Uint8Array): string {
  return JSON.stringify(Buffer.from(bytes).toString("latin1"));
}
