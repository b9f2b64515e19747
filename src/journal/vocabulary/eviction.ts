import type { Facts, Terms } from "./term.ts";

/** Of the node that defends itself, and of pods that go for it or for a limit of their own. */
export const evictionTerms = {
  EvictionThresholdMet: { kind: "decision", event: { type: "Warning", words: "{message}" } },
  EvictionAverted: { kind: "observation" },
  EvictionsConfirmed: { kind: "input" },
  EvictionByChange: { kind: "decision" },
  PodEvicted: { kind: "decision", event: { type: "Warning", reason: "Evicted", words: "{message}" }, why: "stop" },
} as const satisfies Terms;

export const evictionFacts = {
  StorageLimitPassed: {},
} as const satisfies Facts;
