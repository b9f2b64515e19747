import assert from "node:assert/strict";
import { test } from "node:test";
import { nextStamp, planRotation, rotatedLogs, unusedLogs } from "./rotated-names.ts";

const now = Date.UTC(2026, 10, 20, 14, 2, 11);

test("rotated files are recognised among others, oldest first", () => {
  const names = ["0.log", "0.log.20261120-140000", "0.log.20261120-130000.gz", "10.log.20261120-120000", "0.log.x"];
  assert.deepEqual(rotatedLogs(names, "0.log"), [
    { name: "0.log.20261120-130000.gz", stamp: "20261120-130000", packed: true },
    { name: "0.log.20261120-140000", stamp: "20261120-140000", packed: false },
  ]);
});

test("a stamp is UTC, and always later than the newest", () => {
  assert.equal(nextStamp(now, undefined), "20261120-140211");
  assert.equal(nextStamp(now, "20261120-140210"), "20261120-140211");
  assert.equal(nextStamp(now, "20261120-140211"), "20261120-140212", "twice in a second");
  assert.equal(nextStamp(now, "20261231-235959"), "20270101-000000", "the clock jumped back");
});

test("a rotation keeps a limited number of files, compresses all but the newest, and cleans up after a crash", () => {
  const stamps = ["20261120-100000.gz", "20261120-110000.gz", "20261120-120000.gz", "20261120-130000"];
  const rotated = stamps.map((stamp) => `0.log.${stamp}`);
  const crashed = ["0.log.20261120-130000.tmp", "0.log.20261120-120000"];
  const names = ["0.log", "1.log", ...rotated, ...crashed];
  assert.deepEqual(planRotation(names, "0.log", 5, now), {
    remove: ["0.log.20261120-130000.tmp", "0.log.20261120-120000", "0.log.20261120-100000.gz"],
    pack: ["0.log.20261120-130000"],
    rotatedName: "0.log.20261120-140211",
  });
  assert.deepEqual(unusedLogs(names, "1.log"), []);
});

test("with two files only the current and the last one are kept", () => {
  const plan = planRotation(["0.log", "0.log.20261120-130000"], "0.log", 2, now);
  assert.deepEqual([plan.remove, plan.pack], [["0.log.20261120-130000"], []]);
});
