import { createHash } from "node:crypto";
import type { Hashing } from "../../ports/hashing.ts";

/** Digests by Node's OpenSSL. */
export const systemHashing: Hashing = {
  sha256: (data) => createHash("sha256").update(data).digest("hex"),
};
