import type { JournalEntry } from "./entry.ts";
import { termOf } from "./vocabulary.ts";

/**
 * Whether a pod's entries go back to its beginning: they begin when it was added, and every container that ran was started
 * among them. Each start of podwright adds its pods again, so that the first entry alone does not tell. Pure.
 * @param own of one UID, by sequence number
 */
export function hasBeginning(own: readonly JournalEntry[]): boolean {
  // Before a pod is added, its manifest may have been ignored, and its claims are bound.
  const first = own.find(({ what }) => what !== "ClaimBound" && termOf(what).why !== "shadow");
  if (first !== undefined && first.what !== "PodAdded") return false;
  const started = new Set<string>();
  for (const { kind, what, container, data } of own) {
    if (container === undefined) continue;
    if (kind === "action" && what === "StartContainer") started.add(container);
    const ran = what === "ContainerDied" || (what === "ContainerStateChanged" && data?.["state"] === "running");
    if (ran && !started.has(container)) return false;
  }
  return true;
}
