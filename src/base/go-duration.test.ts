import assert from "node:assert/strict";
import { test } from "node:test";
import { formatGoDuration, parseGoDuration } from "./go-duration.ts";

test("durations are read as Go reads them", () => {
  const samples: Readonly<Record<string, number>> = {
    "0": 0,
    "0s": 0,
    "10s": 10_000,
    "1h30m": 5_400_000,
    "1m0.5s": 60_500,
    ".5s": 500,
    "-300ms": -300,
    "+1us": 0.001,
    "2µs": 0.002,
    "1ns": 0.000_001,
  };
  for (const [text, ms] of Object.entries(samples)) assert.equal(parseGoDuration(text), ms, text);
});

test("invalid Go durations are rejected", () => {
  for (const text of ["", "10", "s", "1d", "1h 30m", "1.s.", "--1s", "1e3s", "300000000h", "5m-"]) {
    assert.equal(parseGoDuration(text), undefined, text);
  }
});

test("durations are written as Go writes them", () => {
  const samples: Readonly<Record<string, number>> = {
    "0s": 0,
    "100ms": 100,
    "1.5s": 1500,
    "1m0s": 60_000,
    "1h0m0s": 3_600_000,
    "4h2m0.25s": 14_520_250,
    "-20s": -20_000,
    "1.5µs": 0.0015,
    "7ns": 0.000_007,
    "10s": 10_000,
  };
  for (const [text, ms] of Object.entries(samples)) assert.equal(formatGoDuration(ms), text);
});
