import { ApiError } from "./api-error.ts";
import { type Draft, type Fields, type Json, numberAt, textAt } from "./objects.ts";
import { type FieldType, type Message, protobufKinds } from "./protobuf-kinds.ts";

/** An encoded field: a number, or bytes. */
interface WireField {
  readonly number: number;
  readonly value: number | Buffer;
}

function readFields(bytes: Buffer): WireField[] {
  const fields: WireField[] = [];
  let offset = 0;
  const varint = (): number => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[offset++] ?? 0;
      value += BigInt(byte & 0x7f) << shift;
      // Negative numbers are 64-bit two's complement.
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
  };
  while (offset < bytes.length) {
    const key = varint();
    const kind = key % 8;
    if (kind !== 0 && kind !== 2) throw new Error(`protobuf with a wire type that Kubernetes does not use: ${kind}`);
    const size = varint();
    fields.push({ number: Math.floor(key / 8), value: kind === 0 ? size : bytes.subarray(offset, offset + size) });
    if (kind === 2) offset += size;
  }
  return fields;
}

function readTime(bytes: Buffer): string | undefined {
  const seconds = readFields(bytes).find(({ number }) => number === 1)?.value;
  return typeof seconds === "number" ? new Date(seconds * 1000).toISOString().replace(".000Z", "Z") : undefined;
}

/** The message contains its type. */
function readIntegerOrString(bytes: Buffer): Json {
  const read = readMessage(
    {
      1: { name: "type", type: "integer" },
      2: { name: "number", type: "integer" },
      3: { name: "text", type: "string" },
    },
    bytes,
  );
  return read["type"] === 1 ? textAt(read, "text") : (numberAt(read, "number") ?? 0);
}

/** @returns undefined for values that JSON omits: Go also encodes empty texts and times */
function readValue(type: FieldType, value: number | Buffer): Json | undefined {
  if (typeof value === "number") return type === "boolean" ? value !== 0 : value;
  if (type === "string") return value.length === 0 ? undefined : value.toString();
  if (type === "bytes") return value.length === 0 ? undefined : value.toString("base64");
  if (type === "time") return readTime(value);
  if (type === "quantity") return textAt(readMessage({ 1: { name: "string", type: "string" } }, value), "string");
  if (type === "integer or string") return readIntegerOrString(value);
  if (type === "texts") return readFields(value).map((each) => String(each.value));
  return typeof type === "object" ? readMessage(type, value) : undefined;
}

function readMessage(message: Message, bytes: Buffer): Fields {
  const read: Draft = {};
  for (const { number, value } of readFields(bytes)) {
    const field = message[number];
    if (field === undefined) continue;
    if (field.of === "list") {
      const items = (read[field.name] ?? []) as readonly Json[];
      read[field.name] = [...items, readValue(field.type, value) ?? ""];
    } else if (field.of === "map") {
      const entry = readMessage(
        { 1: { name: "key", type: "string" }, 2: { name: "value", type: field.type } },
        Buffer.from(value as Buffer),
      );
      read[field.name] = {
        ...(read[field.name] as Fields | undefined),
        [textAt(entry, "key")]: entry["value"] ?? "",
      };
    } else {
      const found = readValue(field.type, value);
      if (found !== undefined) read[field.name] = found;
    }
  }
  return read;
}

const typeMessage: Message = { 1: { name: "apiVersion", type: "string" }, 2: { name: "kind", type: "string" } };
const envelopeMessage: Message = { 1: { name: "type", type: typeMessage }, 2: { name: "raw", type: "bytes" } };

/**
 * Decodes the requests of kubectl's typed commands (`create namespace`, `certificate approve`, `drain`, `auth can-i`
 * …): a magic number, then an envelope with kind and object.
 * @throws ApiError 415 for other kinds: podwright must send JSON
 */
export function readProtobuf(bytes: Buffer): Fields {
  const envelope = readMessage(envelopeMessage, bytes.subarray(4));
  const { apiVersion, kind } = (envelope["type"] ?? {}) as { readonly apiVersion?: string; readonly kind?: string };
  const message = protobufKinds[kind ?? ""];
  if (message === undefined || bytes.subarray(0, 4).toString("latin1") !== "k8s\0") {
    const what = `protobuf of ${kind ?? "something else"}`;
    throw new ApiError(415, "UnsupportedMediaType", `this server reads JSON; it does not read ${what}`);
  }
  const object = readMessage(message, Buffer.from((envelope["raw"] ?? "") as string, "base64"));
  return { apiVersion: apiVersion ?? "", kind: kind ?? "", ...object };
}
