import type { Pod } from "../../api/pod.ts";
import { referencedObjects } from "../../api/referenced-objects.ts";
import type { ObjectLookup } from "./environment.ts";

/** Takes secret values out of a text that a container chose. */
export type HideSecrets = (text: string) => string;

/** Told in place of a text while values that may stand in it can't be read: that must not keep anything from its verdict. */
const withheld = "<hidden while a Secret of the pod cannot be read>";
/** A shorter value may stand in any text by chance, and says little. */
const leastCharacters = 4;
const jsonWebToken = /\beyJ[\w-]{10,}\.[\w-]+\.[\w-]*/g;

/**
 * For what is quoted of a container's commands and answers in the journal, in events and to people: values of the Secrets
 * that the pod refers to, whole or a line of them, and tokens of service accounts are replaced by their names. What a
 * container encodes or cuts is not found.
 * Never throws: while a Secret can't be read, as the API server has not told of it yet, nothing of the text is told.
 * @param pod undefined when nobody knows it any more: only tokens are found then
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
    // The longest first: one may hold another. All at once: a name may hold a value.
    const values = [...names.keys()].toSorted((one, other) => other.length - one.length);
    return hidden.replaceAll(
      new RegExp(values.map((value) => RegExp.escape(value)).join("|"), "g"),
      (value) => `<${names.get(value)}>`,
    );
  };
}

/** What is hidden, and what is told in its place. @throws what the lookup does */
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
