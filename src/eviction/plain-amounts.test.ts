import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, thresholdOf } from "../../test/support/eviction.ts";
import { limitText, metText, plainAmount } from "./plain-amounts.ts";

test("bytes are given in the largest binary unit, rounded, and counts in full", () => {
  const amounts = [0n, 1023n, 1024n, 1_048_575n, 1_048_524n, 1_073_741_823n, 3n << 29n, 5n << 50n];
  assert.deepEqual(
    amounts.map((amount) => plainAmount("memory", amount)),
    ["0", "1023", "1Ki", "1Mi", "1023.9Ki", "1Gi", "1.5Gi", "5120Ti"],
  );
  assert.deepEqual([plainAmount("pids", 32_768n), plainAmount("inodes", 1024n)], ["32768", "1024"]);
});

test("a limit is given in the same units as what is left, beside what is configured", () => {
  assert.equal(limitText(thresholdOf("memory.available", "100Mi"), 1n << 30n), "100Mi");
  assert.equal(limitText(thresholdOf("memory.available", "100M"), 1n << 30n), "95.4Mi (100M)");
  assert.equal(limitText(thresholdOf("nodefs.available", 0.1), 1n << 30n), "102.4Mi (10% of 1Gi)");
  assert.equal(limitText(thresholdOf("pid.available", "1k"), 32_768n), "1000 (1k)");
});

test("what is just below its limit does not look equal to it", () => {
  const threshold = thresholdOf("memory.available", "100Mi");
  const text = (left: bigint): string => metText(threshold, observed({ "memory.available": left }));
  assert.equal(text(50n << 20n), "memory.available 50Mi is below 100Mi");
  assert.equal(text((100n << 20n) - 1n), "memory.available 104857599 is below 100Mi");
  const odd = thresholdOf("memory.available", "104900000");
  const close = metText(odd, observed({ "memory.available": 104_899_000n }));
  assert.equal(close, "memory.available 104899000 is below 100Mi (104900k)");
});
