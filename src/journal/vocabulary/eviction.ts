import type { Facts, Terms } from "./term.ts";

/** Evictions, for node pressure or for a pod's own limit. */
export const evictionTerms = {
  EvictionThresholdMet: { kind: "decision", event: { type: "Warning", words: "{message}" } },
  EvictionAverted: { kind: "observation" },
  EvictionsConfirmed: { kind: "input" },
  EvictionByChange: { kind: "decision", event: { type: "Warning", words: "{message}" } },
  PodEvicted: { kind: "decision", event: { type: "Warning", reason: "Evicted", words: "{message}" }, why: "stop" },
} as const satisfies Terms;

export const evictionFacts = {
  StorageLimitPassed: {},
} as const satisfies Facts;
