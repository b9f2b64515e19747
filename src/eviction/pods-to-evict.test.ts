import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { podsToEvict } from "./pods-to-evict.ts";
import { type Candidate, rankPods } from "./rank.ts";

const mi = 1 << 20;

function candidate(name: string, mebibytes: number | undefined, priority = 0): Candidate {
  const usage = mebibytes === undefined ? undefined : { memoryBytes: mebibytes * mi, containers: [], volumes: [] };
  return { pod: podWith(name, {}, { priority }), usage };
}

test("as many pods would have to go as it takes until enough is available, with the minimum reclaim", () => {
  const candidates = [
    candidate("critical", 900, 2_000_000_000),
    candidate("unknown", undefined),
    candidate("small", 10),
    candidate("large", 100),
    candidate("medium", 50),
  ];
  const ranked = rankPods(candidates, "memory.available", "one");
  const threshold = thresholdOf("memory.available", "100Mi");
  const names = (left: bigint, reclaim?: string): string[] => {
    const minReclaim = reclaim === undefined ? undefined : thresholdOf("memory.available", reclaim).value;
    const observations = observed({ "memory.available": left << 20n });
    return podsToEvict(ranked, { ...threshold, minReclaim }, observations).map(({ metadata }) => metadata.name);
  };
  assert.deepEqual(names(10n), ["large"]);
  assert.deepEqual(names(0n), ["large"]);
  assert.deepEqual(names(0n, "1Mi"), ["large", "medium"]);
  assert.deepEqual(names(0n, "1Gi"), ["large", "medium", "small", "unknown"]);
});
