import assert from "node:assert/strict";
import { test } from "node:test";
import { formatNanoseconds, formatTime } from "./time.ts";

test("times are written in whole seconds, cut and not rounded", () => {
  assert.equal(formatTime(1_795_203_087_999), "2026-11-20T19:31:27Z");
  assert.equal(formatNanoseconds(1_795_203_087_999_999_999n), "2026-11-20T19:31:27Z");
});

test("a future time is ignored", () => {
  assert.equal(formatNanoseconds(0n), null);
});
