import type { Json } from "./json.ts";

/**
 * JSON as Go's encoding/json writes it: no spaces, keys in the order given, and `<`, `>`, `&`, U+2028 and U+2029
 * escaped. Annotations and hashes are compared byte for byte with Go's.
 */
export function goJson(value: Json): string {
  return JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
