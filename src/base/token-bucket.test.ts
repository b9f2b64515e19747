import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenBucket } from "./token-bucket.ts";

test("a bucket allows its burst and then its rate", () => {
  const bucket = new TokenBucket(5, 10);
  const taken = (nowMs: number, tries: number): number =>
    Array.from({ length: tries }, () => bucket.tryTake(nowMs)).filter(Boolean).length;
  assert.equal(taken(0, 20), 10);
  assert.equal(taken(100, 5), 0);
  assert.equal(taken(1_000, 20), 5);
  assert.equal(taken(100_000, 20), 10, "it never holds more than its burst");
});

test("a rate of 0 means no limit", () => {
  const bucket = new TokenBucket(0, 0);
  assert.ok(Array.from({ length: 100 }, () => bucket.tryTake(0)).every(Boolean));
});
