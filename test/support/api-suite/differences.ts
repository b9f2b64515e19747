import { isDeepStrictEqual } from "node:util";
import { isFields, type Json } from "../../apiserver/objects.ts";
import { knownDifferences } from "./known.ts";

const shownCharacters = 300;

function shown(value: Json | undefined): string {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text;
}

/** The deepest places where two values differ. */
function places(ours: Json | undefined, real: Json | undefined, path: string): string[] {
  if (isDeepStrictEqual(ours, real)) return [];
  const inner = (a: Record<string, Json | undefined>, b: Record<string, Json | undefined>): string[] =>
    [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name) => places(a[name], b[name], `${path}.${name}`));
  if (Array.isArray(ours) && Array.isArray(real)) {
    return inner(Object.fromEntries(ours.entries()), Object.fromEntries(real.entries()));
  }
  if (isFields(ours ?? null) && isFields(real ?? null)) {
    return inner(ours as Record<string, Json>, real as Record<string, Json>);
  }
  return [`  ${path}: ${shown(ours)}, really ${shown(real)}`];
}

/**
 * The differences of two runs of the suite, for people; known ones are omitted.
 * @param ours the responses of the API server for tests, by step
 * @param real those of the real one
 */
export function differences(ours: ReadonlyMap<string, Json>, real: ReadonlyMap<string, Json>): string[] {
  const names = [...new Set([...real.keys(), ...ours.keys(), ...knownDifferences.keys()])];
  return names.flatMap((name): string[] => {
    const found = places(ours.get(name), real.get(name), "");
    if (!knownDifferences.has(name)) return found.length === 0 ? [] : [`${name}:\n${found.join("\n")}`];
    return found.length > 0 ? [] : [`${name}: this no longer differs, and is to leave the list of what does`];
  });
}
