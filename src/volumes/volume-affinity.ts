import type { PersistentVolume } from "../api/persistent-volume.ts";
import { matchesTerm } from "../pods/node-affinity.ts";

/**
 * Why a PersistentVolume cannot be used on a node with these labels, in upstream's words; undefined: it can. Pure.
 * @param labels undefined: not known yet
 */
export function affinityProblem(
  { spec }: PersistentVolume,
  labels: Readonly<Record<string, string>> | undefined,
): string | undefined {
  const required = spec.nodeAffinity?.required;
  if (required === undefined) return undefined;
  if (labels === undefined) return "the labels of this node are not known yet: the API server has not sent its Node";
  // Terms on fields match no node: upstream's check knows the labels only.
  const matches = required.nodeSelectorTerms.some((term) => matchesTerm(term, { name: "", labels }));
  return matches ? undefined : "no matching NodeSelectorTerms";
}
