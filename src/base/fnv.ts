/** Fowler-Noll-Vo hashes, variant 1a (draft-eastlake-fnv): what Kubernetes names things by. Not for security. */

const utf8 = new TextEncoder();

/** 32 bits, unsigned. */
export function fnv32a(data: string | Uint8Array): number {
  let hash = 0x811c9dc5;
  const bytes = toBytes(data);
  // An iterator makes an object for each byte.
  for (let at = 0; at < bytes.length; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash >>> 0;
}

/** 64 bits. */
export function fnv64a(data: string | Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of toBytes(data)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash;
}

const mask128 = (1n << 128n) - 1n;
const prime128 = (1n << 88n) + 0x13bn;

/** 128 bits. */
export function fnv128a(data: string | Uint8Array): bigint {
  let hash = 0x6c62272e07bb014262b821756295c58dn;
  for (const byte of toBytes(data)) hash = ((hash ^ BigInt(byte)) * prime128) & mask128;
  return hash;
}

function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? utf8.encode(data) : data;
}
