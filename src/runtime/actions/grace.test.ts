import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { testPod } from "../../../test/support/observed.ts";
import { containerGraceSeconds, gracePeriodSeconds, minimumGraceSeconds, stopTimeoutSeconds } from "./grace.ts";

const podOf = (spec: number | undefined, deletion?: number) => {
  const pod = testPod(spec === undefined ? {} : { terminationGracePeriodSeconds: spec });
  return deletion === undefined ? pod : { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: deletion } };
};

test("a pod's grace period is its deletion's, else its spec's, else 30 s", () => {
  assert.equal(gracePeriodSeconds(podOf(undefined)), 30);
  assert.equal(gracePeriodSeconds(podOf(0)), 0);
  assert.equal(gracePeriodSeconds(podOf(5)), 5);
  assert.equal(gracePeriodSeconds(podOf(5, 60)), 60);
  assert.equal(gracePeriodSeconds(podOf(5, 0)), 0, "a forced deletion");
});

test("a probe's own grace period counts, longer or shorter, until the pod is deleted", () => {
  assert.equal(containerGraceSeconds(podOf(30), undefined), 30);
  assert.equal(containerGraceSeconds(podOf(30), 5), 5);
  assert.equal(containerGraceSeconds(podOf(30), 90), 90);
  assert.equal(containerGraceSeconds(podOf(30, 10), 90), 10);
});

test("StopContainer gets the remaining time, never less and at most two seconds more", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e7, noNaN: true }),
      fc.double({ min: -1e5, max: 1e5, noNaN: true }),
      (now, left) => {
        const killAtMs = now + left;
        const timeout = stopTimeoutSeconds(killAtMs, now);
        assert.ok(Number.isInteger(timeout) && timeout >= minimumGraceSeconds);
        assert.ok(now + timeout * 1000 + 0.002 >= killAtMs, "SIGKILL before the grace is over");
        assert.ok(now + timeout * 1000 <= Math.max(killAtMs + 1000, now + minimumGraceSeconds * 1000) + 1e-6);
      },
    ),
  );
});

test("an immediate grace period is not a second longer due to fractional times", () => {
  const [nowMs, graceSeconds] = [28_602.1, 37];
  assert.equal(stopTimeoutSeconds(nowMs + graceSeconds * 1000, nowMs), graceSeconds);
});

test("an extremely long grace period stays within int64 nanoseconds", () => {
  const seconds = stopTimeoutSeconds(Number.MAX_SAFE_INTEGER * 1000, 5);
  assert.ok(seconds > 30 * 365 * 86_400);
  assert.ok(BigInt(seconds) * 1_000_000_000n < 2n ** 63n);
});
