import type { Pod } from "./pod.ts";

/**
 * Compares pods by their creation, the oldest first: those that come together are admitted in this order, so that those
 * admitted first are so again where not all have room. Servers list pods by name. Pods without a time, those of manifests,
 * come before others.
 */
export function byCreation(a: Pod, b: Pod): number {
  const [first = "", second = ""] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp];
  if (first === second) return 0;
  // RFC 3339 times in UTC are in order as texts.
  return first < second ? -1 : 1;
}
