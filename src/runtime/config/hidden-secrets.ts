import type { Pod } from "../../api/pod.ts";
import { referencedObjects } from "../../api/referenced-objects.ts";
import type { ObjectLookup } from "./environment.ts";

/** Removes secret values from a text that a container chose. */
export type HideSecrets = (text: string) => string;

/** Replaces a text while the Secrets that it may contain cannot be read: that must not block the result. */
const withheld = "<hidden while a Secret of the pod cannot be read>";
/** Shorter values occur in any text by chance. */
const leastCharacters = 4;
const jsonWebToken = /\beyJ[\w-]{10,}\.[\w-]+\.[\w-]*/g;

/**
 * For container output quoted in the journal, in Events and to people: values of the pod's Secrets, whole or a line of
 * them, and service account tokens are replaced by their names. Encoded or truncated values are not found. Never
 * throws: while a Secret cannot be read, nothing of the text is shown.
 * @param pod undefined for an unknown pod: only tokens are found
 */
export function hideSecrets(objects: Pick<ObjectLookup, "secret">, pod: Pod | undefined): HideSecrets {
  return (text) => {
    const hidden = text.replaceAll(jsonWebToken, "<token>");
    if (pod === undefined) return hidden;
    let names: Map<string, string>;
    try {
      names = secretTexts(objects, pod);
    } catch {
      return withheld;
    }
    if (names.size === 0) return hidden;
    // The longest first: one may contain another. In one pass: a name may contain a value.
    const values = [...names.keys()].toSorted((one, other) => other.length - one.length);
    return hidden.replaceAll(
      new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g"),
      (value) => `<${names.get(value)}>`,
    );
  };
}

/** The hidden values and their replacements. @throws what the lookup throws */
function secretTexts(objects: Pick<ObjectLookup, "secret">, pod: Pod): Map<string, string> {
  const found = new Map<string, string>();
  for (const secret of referencedObjects(pod.spec).secrets) {
    for (const [key, bytes] of objects.secret(pod.metadata.namespace, secret)?.data ?? []) {
      const value = Buffer.from(bytes).toString().trim();
      for (const text of [value, ...value.split(/\s*\n\s*/)]) {
        if (text.length >= leastCharacters) found.set(text, `secret ${secret}/${key}`);
      }
    }
  }
  return found;
}
