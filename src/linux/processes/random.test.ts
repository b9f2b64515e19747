import assert from "node:assert/strict";
import { test } from "node:test";
import { systemRandom } from "./random.ts";

test("uniform numbers lie in [0, 1) and fill it evenly", () => {
  const buckets = Array.from({ length: 10 }, () => 0);
  for (let draw = 0; draw < 10_000; draw++) {
    const number = systemRandom.uniform();
    assert.ok(number >= 0 && number < 1);
    const bucket = Math.floor(number * 10);
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  }
  // The standard deviation is 30, so a fair source misses this once in about 10^20 runs.
  for (const count of buckets) assert.ok(Math.abs(count - 1000) < 300, buckets.join(" "));
});

test("bytes have the requested length and differ each time", () => {
  assert.equal(systemRandom.bytes(0).length, 0);
  const first = systemRandom.bytes(16);
  assert.equal(first.length, 16);
  assert.notDeepEqual(first, systemRandom.bytes(16));
});
