import { fnv128a } from "../base/fnv.ts";
import type { Hashing } from "../ports/hashing.ts";

/** As long as SHA-256, and good enough to distinguish things on a simulated machine. */
export const simHashing: Hashing = {
  sha256: (data) => {
    const text = typeof data === "string" ? data : Buffer.from(data).toString("latin1");
    return ["a", "b"]
      .map((salt) =>
        fnv128a(salt + text)
          .toString(16)
          .padStart(32, "0"),
      )
      .join("");
  },
};
