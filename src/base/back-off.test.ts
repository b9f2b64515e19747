import assert from "node:assert/strict";
import { test } from "node:test";
import { BackOff } from "./back-off.ts";

const second = 1000;

test("a key without a failure is not in back-off", () => {
  const backOff = new BackOff(10 * second, 300 * second);
  assert.equal(backOff.isInBackOffSinceUpdate("web", 1), false);
  assert.equal(backOff.endsAt("web", 0), undefined);
  assert.equal(backOff.get("web"), 0);
});

test("each failure doubles the delay up to the maximum", () => {
  const backOff = new BackOff(10 * second, 300 * second);
  const delays: number[] = [];
  for (let failure = 0, now = 0; failure < 7; failure++) {
    backOff.next("web", now, now);
    delays.push(backOff.get("web") / second);
    now += backOff.get("web");
  }
  assert.deepEqual(delays, [10, 20, 40, 80, 160, 300, 300]);
});

test("the wait runs from the event, not from the moment it was noticed", () => {
  const backOff = new BackOff(10 * second, 300 * second);
  backOff.next("web", 0, 4 * second);
  assert.equal(backOff.endsAt("web", 2 * second), 12 * second);
  assert.equal(backOff.endsAtSinceUpdate("web", 5 * second), 14 * second);
  assert.equal(backOff.isInBackOffSinceUpdate("web", 14 * second), false);
});

test("an event more than twice the maximum after the last failure starts over", () => {
  const backOff = new BackOff(10 * second, 300 * second);
  backOff.next("web", 0, 0);
  backOff.next("web", 0, 0);
  assert.equal(backOff.get("web"), 20 * second);
  assert.equal(backOff.endsAt("web", 600 * second), 620 * second, "exactly twice is not yet expired");
  assert.equal(backOff.endsAt("web", 600 * second + 1), undefined);
  backOff.next("web", 600 * second + 1, 600 * second + 1);
  assert.equal(backOff.get("web"), 10 * second);
});

test("an expiry of its own counts, however short the maximum", () => {
  const backOff = new BackOff(10 * second, 1 * second, 600 * second);
  backOff.next("web", 0, 0);
  assert.equal(backOff.endsAt("web", 600 * second), 601 * second);
  assert.equal(backOff.endsAt("web", 600 * second + 1), undefined);
});

test("keys are independent, and the expired ones are collected", () => {
  const backOff = new BackOff(10 * second, 300 * second);
  backOff.next("a", 0, 0);
  backOff.next("b", 400 * second, 400 * second);
  assert.deepEqual(backOff.gc(601 * second), ["a"]);
  assert.equal(backOff.size, 1);
  assert.equal(backOff.get("b"), 10 * second);
});

test("an initial delay above the maximum is cut to it", () => {
  const backOff = new BackOff(10 * second, 1 * second);
  backOff.next("web", 0, 0);
  assert.equal(backOff.get("web"), 1 * second);
});
