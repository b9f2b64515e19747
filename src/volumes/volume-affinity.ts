import type { PersistentVolume } from "../api/persistent-volume.ts";
import { matchesTerm } from "../pods/node-affinity.ts";

/** Why a PersistentVolume cannot be used on a node with these labels, in upstream's words; undefined: it can. Pure. */
export function affinityProblem(
  { spec }: PersistentVolume,
  labels: Readonly<Record<string, string>>,
): string | undefined {
  const required = spec.nodeAffinity?.required;
  if (required === undefined) return undefined;
  // Terms on fields match no node: upstream's check knows the labels only.
  const matches = required.nodeSelectorTerms.some((term) => matchesTerm(term, { name: "", labels }));
  return matches ? undefined : "no matching NodeSelectorTerms";
}
