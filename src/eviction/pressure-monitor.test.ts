import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { MemoryRecorder, silentLog } from "../../test/support/sources.ts";
import { PressureMonitor } from "./pressure-monitor.ts";
import type { Observations } from "./pressure.ts";

const free = (available: bigint): Observations => new Map([["nodefs.available", { available, capacity: 1000n }]]);
const thresholds = [{ signal: "nodefs.available", value: { part: 0.1 }, graceMs: 0, minReclaim: undefined }] as const;

interface Scene {
  readonly monitor: PressureMonitor;
  readonly clock: ManualClock;
  readonly journal: MemoryRecorder;
  looks: number;
  changes: number;
  /** What the next look sees; an error: nothing; a promise: it has yet to be seen. */
  sees: Observations | Error | Promise<Observations>;
}

async function withMonitor(
  given: typeof thresholds | readonly [],
  work: (scene: Scene) => Promise<void>,
): Promise<void> {
  const clock = new ManualClock();
  const journal = new MemoryRecorder();
  const observe = async (): Promise<Observations> => {
    scene.looks++;
    if (scene.sees instanceof Error) throw scene.sees;
    return await scene.sees;
  };
  const monitor = new PressureMonitor(
    { clock, journal, log: silentLog, observe },
    { thresholds: given, transitionMs: 30_000 },
  );
  const scene: Scene = { monitor, clock, journal, looks: 0, changes: 0, sees: free(500n) };
  using _listener = monitor.onChange(() => scene.changes++);
  const stop = new AbortController();
  const ended = monitor.run(stop.signal);
  await settle();
  await work(scene);
  stop.abort(new Error("the test is over"));
  await ended;
  assert.deepEqual(clock.waits, []);
}

test("pressure is told when it begins and ends, with what is missing", async () => {
  await withMonitor(thresholds, async (scene) => {
    assert.deepEqual(scene.monitor.pressures, []);
    scene.sees = free(99n);
    await scene.clock.advance(10_000);
    assert.deepEqual([scene.monitor.pressures, scene.changes], [["DiskPressure"], 1]);
    scene.sees = free(500n);
    await scene.clock.advance(30_000);
    assert.deepEqual([scene.monitor.pressures, scene.changes], [[], 2]);
    assert.deepEqual(
      scene.journal.entries.map(({ message }) => message),
      [
        "node is under pressure: DiskPressure (nodefs.available 99 is below 100 (10% of 1000))",
        "node pressure is over: DiskPressure",
      ],
    );
  });
});

test("what held goes on to hold while the machine can't be looked at", async () => {
  await withMonitor(thresholds, async (scene) => {
    scene.sees = free(1n);
    await scene.clock.advance(10_000);
    scene.sees = new Error("no such file");
    await scene.clock.advance(300_000);
    assert.deepEqual(scene.monitor.pressures, ["DiskPressure"]);
    assert.ok(scene.looks > 20);
  });
});

test("nobody waits longer than five seconds for the first look", async () => {
  const clock = new ManualClock();
  const never = new Promise<Observations>(() => {});
  const deps = { clock, journal: new MemoryRecorder(), log: silentLog, observe: async () => await never };
  const monitor = new PressureMonitor(deps, { thresholds, transitionMs: 1 });
  const stop = new AbortController();
  const ended = monitor.run(stop.signal);
  let known = false;
  void monitor.known(stop.signal).then(() => (known = true));
  await clock.advance(4999);
  assert.equal(known, false);
  await clock.advance(1);
  assert.equal(known, true);
  stop.abort(new Error("the test is over"));
  await ended;
});

test("without thresholds nothing is looked at", async () => {
  await withMonitor([], async ({ monitor, clock, looks }) => {
    await monitor.known(new AbortController().signal);
    assert.deepEqual([looks, clock.waits], [0, []]);
  });
});
