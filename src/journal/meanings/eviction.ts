import type { evictionFacts, evictionTerms } from "../vocabulary/eviction.ts";
import type { Meanings } from "./meaning.ts";

const seePreview =
  "Run 'podwright evict --preview' to see which pods go first, and why; free the resource, or add to it.";

export const evictionMeanings = {
  EvictionThresholdMet: {
    means: "An eviction threshold is met: the node first removes garbage, then evicts pods.",
    remedy: seePreview,
  },
  EvictionAverted: { means: "Removing dead containers and unused images was enough: no pod was evicted." },
  EvictionsConfirmed: { means: "A user ran podwright evict --confirm: the settings of this start may evict pods." },
  EvictionByChange: {
    means: "Only changed eviction settings evict this pod: those of the last start would not, or are not known.",
    remedy: "Correct the settings; with --confirm-evictions, allow it with 'podwright evict --confirm'.",
  },
  PodEvicted: {
    means: "The pod is evicted because of node pressure or of its own storage limit; 'podwright why' has the reasons.",
    remedy: "Raise the pod's requests or limits to what it uses, or find out why it uses so much.",
  },
  StorageLimitPassed: { means: "The pod stores more on the node than one of its limits allows." },
} as const satisfies Meanings<keyof typeof evictionTerms | keyof typeof evictionFacts>;
