import { randomFillSync } from "node:crypto";
import type { Random } from "../../ports/random.ts";

/** Batch size: a few bytes cost as much as hundreds. */
const poolBytes = 512;
const pool = Buffer.alloc(poolBytes);
let used = poolBytes;

/** Each byte is used once. */
function take(count: number): Buffer {
  if (count > poolBytes) return randomFillSync(Buffer.alloc(count));
  if (used + count > poolBytes) {
    randomFillSync(pool);
    used = 0;
  }
  const bytes = Buffer.from(pool.subarray(used, used + count));
  pool.fill(0, used, (used += count));
  return bytes;
}

/** The operating system's randomness. */
export const systemRandom: Random = {
  uniform() {
    // 53 bits: every double of the form k / 2^53, each equally likely.
    return Number(take(8).readBigUInt64LE() >> 11n) / 2 ** 53;
  },
  bytes: (count) => new Uint8Array(take(count)),
};
