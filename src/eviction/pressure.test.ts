import assert from "node:assert/strict";
import { test } from "node:test";
import { quantityOf } from "../resources/quantity.ts";
import { lookAtPressure, noPressure, type Observations, type Pressure, type PressureLook } from "./pressure.ts";
import { type Signal, signals, type Threshold } from "./thresholds.ts";

const gi = 1n << 30n;
const threshold = (signal: Signal, amount: bigint, more: Partial<Threshold> = {}): Threshold => ({
  signal,
  value: { amount: quantityOf(amount, "DecimalSI") },
  graceMs: 0,
  minReclaim: undefined,
  ...more,
});
const seen = (signal: Signal, available: bigint): Observations =>
  new Map([[signal, { available, capacity: 100n * gi }]]);

/** The conditions after each of several observations, at the given seconds. */
function holds(
  thresholds: readonly Threshold[],
  looks: readonly (readonly [second: number, observations: Observations])[],
): readonly (readonly Pressure[])[] {
  let look: PressureLook = { state: noPressure, pressures: [], met: [], due: [] };
  return looks.map(([second, observations]) => {
    look = lookAtPressure(look.state, observations, { thresholds, transitionMs: 60_000 }, second * 1000);
    return look.pressures;
  });
}

test("a condition holds as soon as less than its threshold is left, and for the transition period after", () => {
  const thresholds = [threshold("memory.available", gi)];
  const [enough, short] = [seen("memory.available", gi), seen("memory.available", gi - 1n)];
  assert.deepEqual(
    holds(thresholds, [
      [0, enough],
      [10, short],
      [20, enough],
      [69, enough],
      [70, enough],
      [80, short],
    ]),
    [[], ["MemoryPressure"], ["MemoryPressure"], ["MemoryPressure"], [], ["MemoryPressure"]],
  );
});

test("memory, file systems and processes each have their condition", () => {
  const conditions = signals.map((signal) => [signal, holds([threshold(signal, gi)], [[0, seen(signal, 0n)]])[0]]);
  const disk = (["nodefs", "imagefs", "containerfs"] as const).flatMap((name) =>
    ["available", "inodesFree"].map((of) => [`${name}.${of}`, ["DiskPressure"]]),
  );
  assert.deepEqual(conditions, [
    ["memory.available", ["MemoryPressure"]],
    ...disk,
    ["pid.available", ["PIDPressure"]],
    ["allocatableMemory.available", ["MemoryPressure"]],
  ]);
});

test("a soft threshold sets the condition before its grace period has passed", () => {
  const soft = [threshold("pid.available", 100n, { graceMs: 300_000 })];
  assert.deepEqual(holds(soft, [[0, seen("pid.available", 99n)]]), [["PIDPressure"]]);
});

test("a met threshold stays met until its minimum reclaim is free as well; a soft one only after its grace period", () => {
  const reclaim = { minReclaim: { part: 0.25 } };
  const [twenty, forty, fifty] = [20n, 40n, 50n].map((part) => seen("nodefs.available", part * gi));
  const looks = (graceMs: number) => {
    const config = { thresholds: [threshold("nodefs.available", 25n * gi, { ...reclaim, graceMs })], transitionMs: 1 };
    let { state } = lookAtPressure(noPressure, twenty ?? new Map(), config, 0);
    return [forty, fifty, forty].map((observations, index) => {
      const look = lookAtPressure(state, observations ?? new Map(), config, 10_000 * (index + 1));
      ({ state } = look);
      return look.pressures.length;
    });
  };
  assert.deepEqual(looks(0), [1, 0, 0]);
  assert.deepEqual(looks(15_000), [0, 0, 0]);
});

test("an unobservable signal means no pressure, and others are judged independently", () => {
  const thresholds = [threshold("imagefs.inodesFree", 10n), threshold("allocatableMemory.available", gi)];
  assert.deepEqual(holds(thresholds, [[0, seen("allocatableMemory.available", 1n)]]), [["MemoryPressure"]]);
  const both = new Map([...seen("allocatableMemory.available", 1n), ...seen("imagefs.inodesFree", 9n)]);
  assert.deepEqual(holds(thresholds, [[0, both]]), [["MemoryPressure", "DiskPressure"]]);
});

test("a soft threshold causes evictions once its grace period has passed, a hard one at once", () => {
  const soft = threshold("pid.available", 100n, { graceMs: 30_000 });
  const hard = threshold("pid.available", 10n);
  const config = { thresholds: [hard, soft], transitionMs: 1 };
  let state = noPressure;
  const due = [99n, 99n, 9n, 99n].map((available, index) => {
    const look = lookAtPressure(state, seen("pid.available", available), config, index * 20_000);
    ({ state } = look);
    return look.due.map(({ graceMs }) => graceMs);
  });
  assert.deepEqual(due, [[], [], [0, 30_000], [30_000]]);
});
