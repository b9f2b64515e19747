import assert from "node:assert/strict";
import { test } from "node:test";
import { CpuRates } from "./cpu-rates.ts";

test("a rate needs two samples, and samples in quick succession keep the previous rate", () => {
  const rates = new CpuRates();
  assert.equal(rates.rate("a", 1_000_000_000, 0), undefined);
  assert.equal(rates.rate("a", 1_100_000_000, 500), undefined);
  assert.equal(rates.rate("a", 2_000_000_000, 2_000), 500_000_000);
  assert.equal(rates.rate("a", 2_900_000_000, 2_100), 500_000_000);
  assert.equal(rates.rate("a", 3_000_000_000, 12_000), 100_000_000);
});

test("a counter that decreased, or was not sampled for two minutes, starts again", () => {
  const rates = new CpuRates();
  rates.rate("a", 5_000, 0);
  assert.equal(rates.rate("a", 4_000, 10_000), undefined);
  assert.equal(rates.rate("a", 6_000, 20_000), 200);
  assert.equal(rates.rate("a", 9_000, 200_000), undefined);
  rates.sweep(400_000);
  assert.equal(rates.rate("a", 10_000, 401_000), undefined);
});
