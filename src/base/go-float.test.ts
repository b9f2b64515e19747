import assert from "node:assert/strict";
import { test } from "node:test";
import { float32Text } from "./go-float.ts";

test("floats are printed as Go prints them with 32 bits", () => {
  // Recorded from Go 1.26: strconv.FormatFloat(x, 'g', -1, 32), its +Inf and NaN in YAML's words.
  const recorded: readonly (readonly [number, string])[] = [
    [0, "0"],
    [-0, "-0"],
    [1.5, "1.5"],
    [1000, "1000"],
    [100_000, "100000"],
    [1_000_000, "1e+06"],
    [0.0001, "0.0001"],
    [0.00001, "1e-05"],
    [0.1, "0.1"],
    [123_456_789.5, "1.2345679e+08"],
    [-2_572_711.267_915_849, "-2.5727112e+06"],
    [2 ** -12, "0.00024414063"],
    [2 ** -96, "1.2621775e-29"],
    [2 ** 90, "1.2379401e+27"],
    [2 ** -149, "1e-45"],
    [1e-46, "0"],
    [3.5e38, ".inf"],
    [-Infinity, "-.inf"],
    [Number.NaN, ".nan"],
  ];
  for (const [value, text] of recorded) assert.equal(float32Text(value), text);
});
