import type { Files } from "../ports/files.ts";

const path = "/proc/sys/kernel/random/boot_id";
const maxBytes = 256;

/** Names this run of the machine; empty when the kernel does not say. Never rejects. */
export async function bootId(files: Pick<Files, "read">): Promise<string> {
  try {
    return new TextDecoder().decode(await files.read(path, maxBytes)).trim();
  } catch {
    return "";
  }
}
