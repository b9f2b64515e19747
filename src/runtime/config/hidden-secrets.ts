import type { SecretContent } from "../../api/object-content.ts";
import type { Pod } from "../../api/pod.ts";
import { referencedObjects } from "../../api/referenced-objects.ts";
import type { ObjectLookup } from "./environment.ts";
import { mostLines, SecretLines } from "./secret-lines.ts";

/** Removes secret values from a text that a container chose. */
export type HideSecrets = (text: string) => string;

/** Replaces a text while the Secrets that it may contain cannot be read: that must not block the result. */
const withheld = "<hidden while a Secret of the pod cannot be read>";
/** Replaces a text in which the Secrets cannot be looked for in reasonable time. */
const unsearchable = "<hidden: the pod's Secrets are too large to look for them in this text>";
/** About 50 ms at worst. Ten KiB of output and fifty Secrets take half of them. */
const mostSteps = 1_000_000;

/**
 * For container output quoted in the journal, in Events and to people: values of the pod's Secrets, whole or a line of
 * them, and service account tokens are replaced by their names. Encoded or truncated values are not found. Never
 * throws: while a Secret cannot be read, or cannot be looked for in reasonable time, nothing of the text is shown.
 * @param pod undefined for an unknown pod: only tokens are found
 */
export function hideSecrets(objects: Pick<ObjectLookup, "secret">, pod: Pod | undefined): HideSecrets {
  return (text) => {
    const hidden = text.replaceAll(tokenCharacters, withoutTokens);
    if (pod === undefined) return hidden;
    let secrets: readonly NamedLines[] | undefined;
    try {
      secrets = linesOf(objects, pod);
    } catch {
      return withheld;
    }
    return (secrets && withoutLines(hidden, secrets)) ?? unsearchable;
  };
}

const tokenCharacters = /[\w.-]+/g;
const beginOfToken = /\beyJ/;
const leastHeaderCharacters = 13;

/** @param run all characters there that a JSON web token may consist of: a search for whole tokens takes quadratic time */
function withoutTokens(run: string): string {
  const parts = run.split(".");
  const kept: string[] = [];
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] ?? "";
    const begin = part.search(beginOfToken);
    const isToken = begin >= 0 && part.length - begin >= leastHeaderCharacters && parts[index + 1] !== "";
    if (isToken && index + 2 < parts.length) {
      kept.push(`${part.slice(0, begin)}<token>`);
      index += 2;
    } else {
      kept.push(part);
    }
  }
  return kept.join(".");
}

interface NamedLines {
  readonly secret: string;
  readonly lines: SecretLines;
}

const known = new WeakMap<SecretContent, { readonly lines: SecretLines | undefined }>();

/** Undefined when there are too many. @throws what the lookup throws */
function linesOf(objects: Pick<ObjectLookup, "secret">, pod: Pod): readonly NamedLines[] | undefined {
  const all: NamedLines[] = [];
  let count = 0;
  for (const secret of referencedObjects(pod.spec).secrets) {
    const content = objects.secret(pod.metadata.namespace, secret);
    if (content === undefined) continue;
    const { lines } = known.get(content) ?? { lines: SecretLines.of(content) };
    known.set(content, { lines });
    count += lines?.count ?? 0;
    if (lines === undefined || count > mostLines) return undefined;
    if (lines.count > 0) all.push({ secret, lines });
  }
  return all;
}

/**
 * In one pass, because a name may contain a value; at each position the longest value, because one may contain another.
 * Undefined when that takes too long.
 */
function withoutLines(text: string, secrets: readonly NamedLines[]): string | undefined {
  if (secrets.length === 0) return text;
  const steps = { left: mostSteps };
  let shown = "";
  let shownTo = 0;
  for (let position = 0; position < text.length;) {
    let [length, name] = [0, ""];
    for (const { secret, lines } of secrets) {
      const line = lines.longestAt(text, position, steps);
      if (line === undefined || line.length < length) continue;
      [length, name] = [line.length, `<secret ${secret}/${lines.keyOf(line)}>`];
    }
    if (steps.left <= 0) return undefined;
    if (length > 0) {
      shown += text.slice(shownTo, position) + name;
      shownTo = position + length;
    }
    position += Math.max(1, length);
  }
  return shown + text.slice(shownTo);
}
