import { ApiError } from "./api-error.ts";
import { type Draft, type Fields, type Json, textAt } from "./objects.ts";

/** What a field holds: a scalar, or a message by its description. */
type Type = "string" | "bytes" | "integer" | "boolean" | "time" | "texts" | Message;

interface Field {
  readonly name: string;
  readonly type: Type;
  readonly of?: "list" | "map";
}

/** A message by the numbers of its fields (the `generated.proto` files of k8s.io/api and apimachinery). */
interface Message {
  readonly [number: number]: Field;
}

const text = (name: string): Field => ({ name, type: "string" });
const one = (name: string, type: Type): Field => ({ name, type });
const list = (name: string, type: Type = "string"): Field => ({ name, type, of: "list" });
const map = (name: string, type: Type = "string"): Field => ({ name, type, of: "map" });

const meta = one("metadata", {
  1: text("name"),
  2: text("generateName"),
  3: text("namespace"),
  5: text("uid"),
  6: text("resourceVersion"),
  8: one("creationTimestamp", "time"),
  9: one("deletionTimestamp", "time"),
  10: one("deletionGracePeriodSeconds", "integer"),
  11: map("labels"),
  12: map("annotations"),
  14: list("finalizers"),
});
const deleteOptions: Message = {
  1: one("gracePeriodSeconds", "integer"),
  2: one("preconditions", { 1: text("uid"), 2: text("resourceVersion") }),
  4: text("propagationPolicy"),
  5: list("dryRun"),
};
const attributes: Message = {
  1: text("namespace"),
  2: text("verb"),
  3: text("group"),
  4: text("version"),
  5: text("resource"),
  6: text("subresource"),
  7: text("name"),
};
const condition: Message = {
  1: text("type"),
  2: text("reason"),
  3: text("message"),
  4: one("lastUpdateTime", "time"),
  5: one("lastTransitionTime", "time"),
  6: text("status"),
};
const requestSpec: Message = {
  1: one("request", "bytes"),
  2: text("username"),
  3: text("uid"),
  4: list("groups"),
  5: list("usages"),
  6: map("extra", "texts"),
  7: text("signerName"),
  8: one("expirationSeconds", "integer"),
};

/** The kinds that kubectl sends in this form and that are worth reading. */
const kinds: Readonly<Record<string, Message>> = {
  Namespace: { 1: meta },
  ConfigMap: { 1: meta, 2: map("data"), 3: map("binaryData", "bytes"), 4: one("immutable", "boolean") },
  Secret: { 1: meta, 2: map("data", "bytes"), 3: text("type"), 4: map("stringData"), 5: one("immutable", "boolean") },
  ServiceAccount: { 1: meta, 4: one("automountServiceAccountToken", "boolean") },
  DeleteOptions: deleteOptions,
  Eviction: { 1: meta, 2: one("deleteOptions", deleteOptions) },
  CertificateSigningRequest: {
    1: meta,
    2: one("spec", requestSpec),
    3: one("status", { 1: list("conditions", condition), 2: one("certificate", "bytes") }),
  },
  SelfSubjectReview: { 1: meta },
  SelfSubjectAccessReview: {
    1: meta,
    2: one("spec", {
      1: one("resourceAttributes", attributes),
      2: one("nonResourceAttributes", { 1: text("path"), 2: text("verb") }),
    }),
  },
  TokenRequest: {
    1: meta,
    2: one("spec", {
      1: list("audiences"),
      3: one("boundObjectRef", { 1: text("kind"), 2: text("apiVersion"), 3: text("name"), 4: text("uid") }),
      4: one("expirationSeconds", "integer"),
    }),
  },
};

/** A field as it stands in the message: a number, or bytes. */
interface WireField {
  readonly number: number;
  readonly value: number | Buffer;
}

function readFields(bytes: Buffer): WireField[] {
  const fields: WireField[] = [];
  let offset = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[offset++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
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

/** @returns undefined for what JSON leaves out: Go writes empty texts and times, too */
function readValue(type: Type, value: number | Buffer): Json | undefined {
  if (typeof value === "number") return type === "boolean" ? value !== 0 : value;
  if (type === "string") return value.length === 0 ? undefined : value.toString();
  if (type === "bytes") return value.length === 0 ? undefined : value.toString("base64");
  if (type === "time") return readTime(value);
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
      const entry = readMessage({ 1: text("key"), 2: one("value", field.type) }, Buffer.from(value as Buffer));
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

/**
 * Reads what kubectl's typed commands send (`create namespace`, `certificate approve`, `drain`, `auth can-i` …): the
 * magic number, then an envelope with the kind and the object.
 * @throws ApiError 415 for other kinds: production clients are to send JSON here
 */
export function readProtobuf(bytes: Buffer): Fields {
  const envelope = readMessage(
    { 1: one("type", { 1: text("apiVersion"), 2: text("kind") }), 2: one("raw", "bytes") },
    bytes.subarray(4),
  );
  const { apiVersion, kind } = (envelope["type"] ?? {}) as { readonly apiVersion?: string; readonly kind?: string };
  const message = kinds[kind ?? ""];
  if (message === undefined || bytes.subarray(0, 4).toString("latin1") !== "k8s\0") {
    const what = `protobuf of ${kind ?? "something else"}`;
    throw new ApiError(415, "UnsupportedMediaType", `this server reads JSON; it does not read ${what}`);
  }
  const object = readMessage(message, Buffer.from((envelope["raw"] ?? "") as string, "base64"));
  return { apiVersion: apiVersion ?? "", kind: kind ?? "", ...object };
}
