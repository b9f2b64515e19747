import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { notBefore } from "./log-since.ts";

const sinceMs = Date.UTC(2026, 10, 20, 14, 0, 0, 500);

test("lines are compared to the millisecond and in any time zone", () => {
  const isWanted = notBefore(sinceMs);
  for (const [time, expected] of [
    ["2026-11-20T14:00:00.500000000Z", true],
    ["2026-11-20T14:00:00.499999999Z", false],
    ["2026-11-20T14:00:01Z", true],
    ["2026-11-20T13:59:59.999Z", false],
    ["2026-11-20T15:00:00.5+01:00", true],
    ["2026-11-20T15:00:00.4+01:00", false],
    ["2026-11-20T14:00:00.9+01:00", false],
    ["2026-11-20T13:30:00-01:00", true],
    ["no time", true],
  ] as const) {
    assert.equal(isWanted(time), expected, time);
  }
});

test("an out-of-range time matches no lines or all", () => {
  assert.equal(notBefore(-9e18)("2026-11-20T14:00:00Z"), true);
  assert.equal(notBefore(9e18)("2026-11-20T14:00:00Z"), false);
  assert.equal(notBefore(Number.MAX_SAFE_INTEGER)("2026-11-20T14:00:00+01:00"), false);
});

test("a line passes exactly when it is not older", () => {
  const ms = fc.integer({ min: sinceMs - 5000, max: sinceMs + 5000 });
  fc.assert(fc.property(ms, ms, (since, at) => notBefore(since)(new Date(at).toISOString()) === at >= since));
});
