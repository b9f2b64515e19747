import type { evictionFacts, evictionTerms } from "../vocabulary/eviction.ts";
import type { Meanings } from "./meaning.ts";

const seePreview =
  "Run 'podwright evict --preview' to see which pods go first, and why; free the resource, or add to it.";

export const evictionMeanings = {
  EvictionThresholdMet: {
    means: "An eviction threshold is met: the node reclaims the resource, from its own garbage first, then from a pod.",
    remedy: seePreview,
  },
  EvictionAverted: { means: "Removing dead containers and unused images was enough: no pod was evicted." },
  EvictionsConfirmed: { means: "A user ran podwright evict --confirm: the thresholds of this start may evict pods." },
  EvictionByChange: {
    means: "Only the changed eviction thresholds evict this pod: those of the last start would not.",
    remedy: "Correct the thresholds, or allow it with 'podwright evict --confirm' where it waits for that.",
  },
  PodEvicted: {
    means: "The pod is evicted, for the node or for a storage limit of its own; 'podwright why' has the reasons.",
    remedy: "Raise the pod's requests or limits to what it uses, or find out why it uses so much.",
  },
  StorageLimitPassed: { means: "The pod stores more on the node than one of its limits allows." },
} as const satisfies Meanings<keyof typeof evictionTerms | keyof typeof evictionFacts>;
