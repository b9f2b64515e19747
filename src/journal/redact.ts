import type { Hashing } from "../ports/hashing.ts";
import type { Json } from "../base/json.ts";

const blockBytes = 64;
const secretName =
  /pass(word|wd|phrase)?$|secret|token|api[-_]?key|private[-_]?key|credential|authorization|dockerconfig|^auth$/i;

/**
 * A digest that tells whether two secret values are equal without telling what they are: HMAC-SHA-256 (RFC 2104) under
 * a key of this node, so that a short secret can't be found by trying. The key is kept beside the state, never here.
 */
export function secretDigest(hashing: Hashing, key: Uint8Array, value: string): string {
  const block = Buffer.alloc(blockBytes);
  block.set(key.length > blockBytes ? Buffer.from(hashing.sha256(key), "hex") : key);
  const inner = hashing.sha256(Buffer.concat([block.map((byte) => byte ^ 0x36), Buffer.from(value)]));
  const outer = hashing.sha256(Buffer.concat([block.map((byte) => byte ^ 0x5c), Buffer.from(inner, "hex")]));
  return `digest:${outer.slice(0, 32)}`;
}

/**
 * A copy of a manifest-like value for `JournalInput.data` in which every secret is replaced by its `digest`: the data of
 * Secrets, fields and environment variables whose name says that they hold one.
 */
export function redactSecrets(value: Json, digest: (secret: string) => string): Json {
  if (isArray(value)) return value.map((item) => redactSecrets(item, digest));
  if (typeof value !== "object" || value === null) return value;
  const isSecretObject = value.kind === "Secret";
  const isSecretVariable = typeof value.name === "string" && secretName.test(value.name);
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => {
      if (isSecretObject && (field === "data" || field === "stringData")) return [field, digestLeaves(inner, digest)];
      if (isSecretVariable && field === "value") return [field, digestLeaves(inner, digest)];
      if (secretName.test(field) && isLeaf(inner)) return [field, digestLeaves(inner, digest)];
      return [field, redactSecrets(inner, digest)];
    }),
  );
}

function digestLeaves(value: Json, digest: (secret: string) => string): Json {
  if (value === null || typeof value === "boolean") return value;
  if (isArray(value)) return value.map((item) => digestLeaves(item, digest));
  if (typeof value !== "object") return digest(String(value));
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, digestLeaves(inner, digest)]));
}

function isLeaf(value: Json): boolean {
  return typeof value !== "object" || value === null;
}

function isArray(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
