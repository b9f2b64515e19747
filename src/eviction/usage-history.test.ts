import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageHistory } from "./usage-history.ts";

const mi = 1 << 20;
const one = (mebibytes: number | undefined): ReadonlyMap<string, number | undefined> =>
  new Map([["uid-a", mebibytes === undefined ? undefined : mebibytes * mi]]);

test("the usage of the last minutes is summarized by its oldest, a middle and its newest sample", () => {
  const history = new UsageHistory();
  assert.equal(history.text("uid-a", "memory.available", 0), "");
  for (let index = 0; index < 24; index++) history.note("memory.available", one(10 * index), index * 10_000);
  assert.equal(history.text("uid-a", "memory.available", 230_000), "50Mi 180 s ago, 140Mi 90 s ago, 220Mi 10 s ago");
  assert.equal(history.text("uid-a", "pid.available", 230_000), "", "it is of another resource");
});

test("removed pods are forgotten, and unknown usage is skipped", () => {
  const history = new UsageHistory();
  history.note("memory.available", one(1), 0);
  history.note("memory.available", one(undefined), 10_000);
  assert.equal(history.text("uid-a", "memory.available", 20_000), "1Mi 20 s ago");
  history.note("memory.available", new Map(), 30_000);
  assert.equal(history.text("uid-a", "memory.available", 40_000), "");
});
