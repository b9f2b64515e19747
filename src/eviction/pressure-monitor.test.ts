import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { PressureMonitor } from "./pressure-monitor.ts";
import type { Observations } from "./pressure.ts";

const free = (available: bigint): Observations => new Map([["nodefs.available", { available, capacity: 1000n }]]);
const thresholds = [{ signal: "nodefs.available", value: { part: 0.1 }, graceMs: 0, minReclaim: undefined }] as const;

test("pressure is reported at its beginning and its end, with the missing amount", () => {
  const journal = new MemoryRecorder();
  const monitor = new PressureMonitor({ journal, log: silentLog }, 30_000);
  let changes = 0;
  using _listener = monitor.onChange(() => changes++);
  const told = [500n, 99n, 500n, 500n].map((available, index) => {
    monitor.judge(thresholds, free(available), index * 20_000);
    return [monitor.pressures, changes];
  });
  assert.deepEqual(told, [
    [[], 0],
    [["DiskPressure"], 1],
    [["DiskPressure"], 1],
    [[], 2],
  ]);
  assert.deepEqual(
    journal.entries.map(({ message }) => message),
    [
      "node is under pressure: DiskPressure (nodefs.available 99 is below 100 (10% of 1000))",
      "node pressure is over: DiskPressure",
    ],
  );
});

test("nothing waits for the first observation once it is settled", async () => {
  const monitor = new PressureMonitor({ journal: new MemoryRecorder(), log: silentLog }, 1);
  const known = monitor.known(new AbortController().signal);
  monitor.settle();
  await known;
  assert.deepEqual(monitor.pressures, []);
});
