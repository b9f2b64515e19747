import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, printable, timeFormat, wrap } from "./text.ts";

test("durations have at most two units", () => {
  const texts = [0, 999, 1_000, 59_940, 59_960, 125_000, 3_600_000, 12_000_000, 180_000_000].map(formatDuration);
  const expected = ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min", "2 min 5 s", "1 h", "3 h 20 min", "2 d 2 h"];
  assert.deepEqual(texts, expected);
});

test("printing escapes control characters and keeps one line", () => {
  assert.equal(printable(" a\r\n\tb\u001b[31m\u202e "), "a b\\u001b[31m\\u202e");
});

test("times are formatted in the requested zone", () => {
  const ms = Date.UTC(2026, 10, 20, 23, 5, 7, 9);
  assert.equal(timeFormat("UTC").time(ms), "23:05:07.009");
  assert.equal(timeFormat("Asia/Tokyo").date(ms), "2026-11-21");
  assert.equal(timeFormat("Asia/Tokyo").time(ms), "08:05:07.009");
});

test("wrapping breaks at spaces, and inside words that are too long", () => {
  assert.deepEqual(wrap("one two three", 7), ["one two", "three"]);
  assert.deepEqual(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
  assert.deepEqual(wrap("", 4), [""]);
  for (const width of [1, 0, -3]) assert.deepEqual(wrap("ab c", width), ["a", "b", "c"]);
});
