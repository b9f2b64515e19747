import { fnv32a } from "../../base/fnv.ts";

/**
 * Decides whether a running container still matches the spec: annotation io.kubernetes.container.hash. Byte for byte
 * upstream's (HashContainer: FNV-32a over name and image only), so that a node can switch kubelets in either direction
 * without restarts. Lower-case hex without padding.
 */
export function containerHash(container: { readonly name: string; readonly image?: string | undefined }): string {
  const json = `{"image":${goJsonString(container.image ?? "")},"name":${goJsonString(container.name)}}`;
  // Upstream hashes go-spew's %#v text of the JSON bytes.
  const dump = `([]uint8)[${new TextEncoder().encode(json).join(" ")}]`;
  return fnv32a(dump).toString(16);
}

/** A JSON string as written by Go's encoding/json: <, >, & and the two line separators are escaped. */
function goJsonString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll(
    /[<>&\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
