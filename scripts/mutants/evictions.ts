import type { Mutant } from "../sim-mutant-list.ts";

/** In code that keeps the node from running out of memory, disk and processes. */
export const evictionMutants: readonly Mutant[] = [
  {
    name: "critical-pods-evicted",
    file: "src/eviction/node-evictions.ts",
    from: "!isCritical && evictor.isCandidate(pod)",
    to: "evictor.isCandidate(pod)",
  },
  {
    name: "critical-pods-held-to-limits",
    file: "src/eviction/storage-limits.ts",
    from: "if (isCriticalPod(pod)) return undefined;",
    to: "",
  },
  {
    name: "rank-ignores-requests",
    file: "src/eviction/rank.ts",
    from: "first(a.exceeds, b.exceeds) ||",
    to: "",
  },
  {
    name: "rank-takes-high-priority",
    file: "src/eviction/rank.ts",
    from: "a.priority - b.priority ||",
    to: "b.priority - a.priority ||",
  },
  {
    name: "rank-takes-small-users",
    file: "src/eviction/rank.ts",
    from: "over(b) - over(a) ||",
    to: "over(a) - over(b) ||",
  },
  {
    name: "conditions-end-at-once",
    file: "src/eviction/pressure.ts",
    from: "nowMs - seen < config.transitionMs",
    to: "nowMs - seen < 1000",
  },
  {
    name: "conditions-never-end",
    file: "src/eviction/pressure.ts",
    from: "return called.has(pressure) ||",
    to: "return called.has(pressure) || seen !== undefined ||",
  },
  {
    name: "evictions-go-on-after-pressure",
    file: "src/eviction/pressure.ts",
    from: "isMet(threshold, observations, before.due.has(threshold))",
    to: "before.due.has(threshold) || isMet(threshold, observations, false)",
  },
  {
    name: "limits-taken-for-met",
    file: "src/eviction/storage-limits.ts",
    from: 'if (limit === undefined || quantityOf(BigInt(used), "BinarySI").compare(limit) <= 0) return undefined;',
    to: "if (limit === undefined) return undefined;",
  },
  {
    name: "evicted-pod-runs-again",
    file: "src/eviction/evicted.ts",
    from: "lasts: true,",
    to: "lasts: false,",
  },
  {
    name: "second-victim-at-once",
    lives: "pressure",
    file: "src/eviction/manager.ts",
    from: "seen.pressure.due.length === 0 || isPending || nowMs",
    to: "seen.pressure.due.length === 0 || nowMs",
  },
  {
    name: "evictions-before-all-pods-are-known",
    lives: "pressure",
    file: "src/eviction/manager.ts",
    from: "!this.#evictor.knowsAllPods &&",
    to: "this.#evictor.knowsAllPods === undefined &&",
  },
  {
    name: "decided-before-a-stop-and-done-after",
    lives: "pressure",
    file: "src/eviction/manager.ts",
    from: "await this.#act(seen, isPending, signal);",
    to: "await this.#act(seen, this.#evictor.isPending, signal);",
  },
  {
    name: "layers-of-victims-not-awaited",
    lives: "pressure",
    file: "src/eviction/space-reclaim.ts",
    from: "if (isOver || !waitsForLayers(after) ||",
    to: "if (isOver || waitsForLayers(after) ||",
  },
  {
    name: "ranked-by-earlier-figures",
    lives: "pressure",
    file: "src/eviction/node-evictions.ts",
    from: 'await usage.readStorage(pods, "anew", signal)',
    to: 'await usage.readStorage(pods, "kept", signal)',
  },
];
