/** SHA256SUMS, as `sha256sum --check` reads it. */
import { createHash } from "node:crypto";

/** @param files contents by name */
export function checksums(files: ReadonlyMap<string, Uint8Array>): string {
  const lines = [...files].map(([name, content]) => `${createHash("sha256").update(content).digest("hex")}  ${name}\n`);
  return lines.toSorted((a, b) => (a.slice(64) < b.slice(64) ? -1 : 1)).join("");
}
