import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageHistory, type UsageSample } from "./usage-history.ts";

const mi = 1 << 20;
const one = (mebibytes: number | undefined, atMs: number): ReadonlyMap<string, UsageSample | undefined> =>
  new Map([["uid-a", mebibytes === undefined ? undefined : { atMs, amount: mebibytes * mi }]]);

test("the usage of the last minutes is summarized by its oldest, a middle and its newest sample", () => {
  const history = new UsageHistory("memory");
  assert.equal(history.text("uid-a", 0), "");
  for (let index = 0; index < 24; index++) history.note(one(10 * index, index * 10_000), index * 10_000);
  assert.equal(history.text("uid-a", 230_000), "50Mi 180 s ago, 140Mi 90 s ago, 220Mi 10 s ago");
  assert.equal(history.text("uid-a", 500_000), "", "it is too long ago");
});

test("removed pods are forgotten, and unknown usage is skipped", () => {
  const history = new UsageHistory("memory");
  history.note(one(1, 0), 0);
  history.note(one(undefined, 10_000), 10_000);
  assert.equal(history.text("uid-a", 20_000), "1Mi 20 s ago");
  history.note(new Map(), 30_000);
  assert.equal(history.text("uid-a", 40_000), "");
});

test("what was measured once is one sample, of the moment when it was measured", () => {
  const history = new UsageHistory("memory");
  for (const nowMs of [10_000, 20_000, 30_000]) history.note(one(5, 5000), nowMs);
  history.note(one(7, 40_000), 40_000);
  assert.equal(history.text("uid-a", 50_000), "5Mi 45 s ago, 7Mi 10 s ago");
});
