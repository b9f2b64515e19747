import assert from "node:assert/strict";
import { test } from "node:test";
import { parseGoDuration } from "../base/go-duration.ts";
import { thresholdAmount, thresholdText } from "../resources/threshold-value.ts";
import { parseThresholds, type ThresholdStatements, uselessStatements } from "./thresholds.ts";

const none: ThresholdStatements = {
  hard: {},
  soft: {},
  softGracePeriods: {},
  minimumReclaim: {},
  enforcesAllocatable: false,
};
const parsed = (given: Partial<ThresholdStatements>) => parseThresholds({ ...none, ...given }, parseGoDuration);

test("thresholds are amounts or percentages, soft ones have a grace period; memory of all pods is observed like the node's", () => {
  const thresholds = parsed({
    hard: { "memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "0%" },
    soft: { "nodefs.inodesFree": "5%" },
    softGracePeriods: { "nodefs.inodesFree": "1m30s" },
    minimumReclaim: { "nodefs.available": "500Mi" },
    enforcesAllocatable: true,
  });
  assert.deepEqual(
    thresholds.map(({ signal, graceMs, minReclaim }) => [signal, graceMs, minReclaim && thresholdText(minReclaim)]),
    [
      ["memory.available", 0, undefined],
      ["nodefs.available", 0, "500Mi"],
      ["nodefs.inodesFree", 90_000, undefined],
      ["allocatableMemory.available", 0, undefined],
    ],
  );
  const [memory, disk] = thresholds;
  assert.equal(memory && thresholdAmount(memory.value, 1n << 40n), 100n << 20n);
  // A percentage is a 32-bit float in upstream, too: 10 % of 10^12 is a little more than 10^11.
  assert.equal(disk && thresholdAmount(disk.value, 1_000_000_000_000n), 100_000_001_490n);
});

test("thresholds of containerfs are accepted without effect", () => {
  const hard = { "containerfs.available": "5%" };
  assert.deepEqual(parsed({ hard }), []);
  assert.deepEqual(uselessStatements({ hard, soft: {} }), ["containerfs.available"]);
});

const wrong: readonly (readonly [given: Partial<ThresholdStatements>, message: RegExp])[] = [
  [{ hard: { "disk.available": "1Gi" } }, /^unsupported eviction signal disk\.available$/u],
  [{ hard: { "memory.available": "0" } }, /^eviction threshold memory\.available must be positive: 0$/u],
  [{ hard: { "memory.available": "-5%" } }, /^eviction percentage threshold memory\.available must be >= 0%: -5%$/u],
  [{ hard: { "memory.available": "101%" } }, /must be <= 100%: 101%$/u],
  [{ hard: { "memory.available": "x%" } }, /parsing "x": invalid syntax$/u],
  [{ hard: { "memory.available": "lots" } }, /^memory\.available: "lots" is not a quantity/u],
  [{ minimumReclaim: { "pid.available": "few" } }, /^pid\.available: "few" is not a quantity/u],
  [
    { soft: { "pid.available": "5%" } },
    /^grace period must be specified for the soft eviction threshold pid\.available$/u,
  ],
  [{ softGracePeriods: { "pid.available": "-1s" } }, /^invalid eviction grace period specified: -1s/u],
  [{ softGracePeriods: { "pid.available": "soon" } }, /^time: invalid duration "soon"$/u],
  [
    { minimumReclaim: { "pid.available": "0%" } },
    /^eviction percentage minimum reclaim pid\.available must be positive: 0%$/u,
  ],
  [{ minimumReclaim: { "pid.available": "-1" } }, /^negative eviction minimum reclaim specified for pid\.available$/u],
];

for (const [given, message] of wrong) {
  test(`${JSON.stringify(given)} is an invalid threshold`, () => {
    assert.throws(() => parsed(given), { message });
  });
}
