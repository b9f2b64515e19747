import { randomBytes } from "node:crypto";
import type { Random } from "../../ports/random.ts";

/** The operating system's randomness. */
export const systemRandom: Random = {
  uniform() {
    // 53 bits: every double of the form k / 2^53, each equally likely.
    return Number(randomBytes(8).readBigUInt64LE() >> 11n) / 2 ** 53;
  },
  bytes: (count) => new Uint8Array(randomBytes(count)),
};
