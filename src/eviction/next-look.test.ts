import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, thresholdOf } from "../../test/support/eviction.ts";
import { nextLookMs, type PastLook, withLook } from "./next-look.ts";
import { byUrgency } from "./urgency.ts";

const threshold = thresholdOf("memory.available", "100");
const pauses = (left: readonly bigint[], everyMs = 10_000): number[] => {
  let looks: readonly PastLook[] = [];
  return left.map((available, index) => {
    looks = withLook(looks, {
      atMs: index * everyMs,
      observations: observed({ "memory.available": available }, 1000n),
    });
    return nextLookMs([threshold], looks);
  });
};

test("far from a threshold the machine is observed at upstream's interval, near it each second", () => {
  assert.deepEqual(pauses([500n, 480n, 470n, 199n, 99n]), [10_000, 10_000, 10_000, 1000, 1000]);
  // 300 are left above it, and 100 are used up in 10 s: it is met in 30 s, then in 20 s.
  assert.deepEqual(pauses([500n, 400n, 300n]), [10_000, 10_000, 1000]);
});

test("only the last 30 seconds count for the trend, and growth is no danger", () => {
  assert.deepEqual(pauses([1000n, 400n, 400n, 400n, 400n]), [10_000, 1000, 1000, 1000, 10_000]);
  assert.deepEqual(pauses([300n, 400n, 900n]), [10_000, 10_000, 10_000]);
});

test("without an observation no threshold is near", () => {
  assert.equal(nextLookMs([thresholdOf("pid.available", "5")], [{ atMs: 0, observations: observed({}) }]), 10_000);
  assert.equal(nextLookMs([threshold], []), 10_000);
});

test("memory comes first, then hard thresholds before soft ones", () => {
  const thresholds = [
    thresholdOf("imagefs.available", 0.1),
    thresholdOf("nodefs.available", 0.2, 1000),
    thresholdOf("memory.available", "1Gi", 1000),
    thresholdOf("nodefs.inodesFree", 0.1),
    thresholdOf("allocatableMemory.available", "100Mi"),
  ];
  assert.deepEqual(
    byUrgency(thresholds).map(({ signal }) => signal),
    [
      ...["allocatableMemory.available", "memory.available", "nodefs.inodesFree", "imagefs.available"],
      "nodefs.available",
    ],
  );
});
