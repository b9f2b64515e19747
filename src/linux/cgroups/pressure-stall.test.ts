import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { systemPressureStall } from "./pressure-stall.ts";

const noPressure = existsSync("/proc/pressure/cpu") ? false : "this kernel has no pressure stall information";

test("stall times for processors and disks are reported, and never decrease", { skip: noPressure }, async () => {
  const before = await systemPressureStall.stalledMs();
  assert.ok(before !== undefined && before >= 0, `${before}`);
  const until = performance.now() + 100;
  while (performance.now() < until) await new Promise((done) => setImmediate(done));
  const after = await systemPressureStall.stalledMs();
  assert.ok(after !== undefined && after >= before && after - before < 60_000, `${before} ${after}`);
});
