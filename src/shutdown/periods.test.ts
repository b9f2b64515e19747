import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { elapsedMs, graceWithin, groupOf, requestedMs, shutdownPeriods } from "./periods.ts";

function podOf(priority?: number, terminationGracePeriodSeconds?: number): Pod {
  const spec = { containers: [], ...(priority !== undefined && { priority }), terminationGracePeriodSeconds };
  return { metadata: { namespace: "default", name: "web", uid: podUid("1") }, spec };
}

test("shutdownGracePeriod gives one period for most pods and one at the end for critical ones", () => {
  assert.deepEqual(shutdownPeriods(30_000, 10_000, []), [
    { priority: 0, graceSeconds: 20 },
    { priority: 2_000_000_000, graceSeconds: 10 },
  ]);
  assert.equal(requestedMs(shutdownPeriods(30_000, 10_000, [])), 30_000);
  assert.deepEqual(shutdownPeriods(0, 0, []), []);
});

test("periods by priority are sorted", () => {
  const [high, low] = [
    { priority: 100, graceSeconds: 5 },
    { priority: -1, graceSeconds: 60 },
  ];
  assert.deepEqual(shutdownPeriods(0, 0, [high, low]), [low, high]);
});

test("a pod belongs to the highest period that does not exceed its priority, else to the lowest", () => {
  const periods = [10, 100, 1000].map((priority) => ({ priority, graceSeconds: 1 }));
  const priorities = [undefined, -5, 9, 10, 11, 99, 100, 101, 999, 1000, 2_000_001_000];
  assert.deepEqual(
    priorities.map((priority) => groupOf(periods, podOf(priority))),
    [0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2],
  );
});

test("a group begun by an earlier run has what is left of its time, and those before it nothing", () => {
  const periods = [10, 100, 1000].map((priority) => ({ priority, graceSeconds: 8 }));
  const elapsed = (nowMs: number): number[] =>
    [0, 1, 2].map((index) => elapsedMs(periods, index, { priority: 100, startMs: 5000 }, nowMs));
  assert.deepEqual(elapsed(8000), [8000, 3000, 0]);
  assert.deepEqual(elapsed(60_000), [8000, 8000, 0]);
  assert.deepEqual(elapsed(4000), [8000, 0, 0], "the wall clock was set back");
  assert.deepEqual(
    [undefined, { priority: 55, startMs: 0 }].map((begun) => elapsedMs(periods, 0, begun, 9000)),
    [0, 0],
    "no group was begun, or the periods have changed",
  );
});

test("a static pod's priority is the number in its spec", () => {
  const pod = podOf();
  const annotations = { "kubernetes.io/config.source": "file" };
  const periods = shutdownPeriods(30_000, 10_000, []);
  assert.equal(groupOf(periods, { ...pod, metadata: { ...pod.metadata, annotations } }), 0);
});

test("a pod gets the shorter of its group's period and its own grace period", () => {
  const period = { priority: 0, graceSeconds: 20 };
  assert.deepEqual(
    [5, 20, 60, undefined].map((seconds) => graceWithin(period, podOf(0, seconds))),
    [5, 20, 20, 20],
  );
});
