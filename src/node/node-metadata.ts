import type { NodeObject } from "../api/node.ts";

/** A Node's desired metadata; null: to be removed. */
export interface WantedMetadata {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string | null>>;
}

/** The patch from current to desired metadata; undefined: none. Pure. */
export function metadataPatch(
  { metadata }: Pick<NodeObject, "metadata">,
  { labels, annotations }: WantedMetadata,
): Partial<WantedMetadata> | undefined {
  const changes = {
    labels: difference(metadata.labels, labels),
    annotations: difference(metadata.annotations, annotations),
  };
  const patch = Object.fromEntries(Object.entries(changes).filter(([, entries]) => Object.keys(entries).length > 0));
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function difference<T extends string | null>(
  has: Readonly<Record<string, string>> = {},
  wanted: Readonly<Record<string, T>>,
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => (has[key] ?? null) !== value));
}
