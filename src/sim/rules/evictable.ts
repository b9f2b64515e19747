import type { Cause } from "../../journal/entry.ts";
import type { KnownPod } from "../../kubelet/known-pods.ts";

/** The shortest grace period of an eviction. */
const leastGraceMs = 1000;

/**
 * Whether the pod may be evicted: it is not being stopped, or only for something else, and until later than an eviction
 * would stop it. A pod that has ended, or that no source has any more, is not evicted.
 */
export function mayBeEvicted({ view: { state }, status, forgotten }: KnownPod, atMs: number): boolean {
  if (state.kind !== "terminating") return state.kind === "syncing";
  const { cause, outcome, lasts } = state.ending;
  const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
  if (forgotten || hasEnded || (outcome === "asContainers" && lasts) || isForEviction(cause)) return false;
  return state.killAtMs > atMs + leastGraceMs;
}

function isForEviction(cause: Cause | undefined): boolean {
  return cause !== undefined && (cause.code === "Evicted" || isForEviction(cause.because));
}
