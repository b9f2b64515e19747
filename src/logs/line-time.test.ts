import assert from "node:assert/strict";
import { test } from "node:test";
import { fixedTime } from "./line-time.ts";

const shown: readonly (readonly [written: string, shown: string])[] = [
  ["2026-11-20T14:00:00.123456789Z", "2026-11-20T14:00:00.123456789Z"],
  ["2026-11-20T14:00:00.1234Z", "2026-11-20T14:00:00.123400000Z"],
  ["2026-11-20T14:00:00Z", "2026-11-20T14:00:00.000000000Z"],
  ["2026-11-20T14:00:00.5+01:00", "2026-11-20T14:00:00.500000000+01:00"],
  ["2026-11-20T14:00:00-03:30", "2026-11-20T14:00:00.000000000-03:30"],
  ["2026-11-20T14:00:00.123456789+00:00", "2026-11-20T14:00:00.123456789Z"],
  ["2026-11-20T14:00:00.1234567891Z", "2026-11-20T14:00:00.123456789Z"],
  ["2026-11-20T14:00:00.x", "2026-11-20T14:00:00.x"],
];

test("a line's time is shown with nine fractional digits in its own zone, and UTC as Z", () => {
  for (const [written, expected] of shown) assert.equal(fixedTime(written), expected);
});
