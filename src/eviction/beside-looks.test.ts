import assert from "node:assert/strict";
import { test } from "node:test";
import { thresholdOf } from "../../test/support/eviction.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { besideLooks } from "./beside-looks.ts";
import type { MachineState } from "./machine-state.ts";
import type { Threshold } from "./thresholds.ts";

const { signal } = new AbortController();

function stateWith(due: readonly Threshold[]): MachineState {
  const pressure = { due, met: due } as unknown as MachineState["pressure"];
  return { observations: new Map(), fileSystems: "one", unmeasured: new Map(), beganMs: 0, atMs: 0, pressure };
}

test("work that ends within a second is not accompanied by observations", async () => {
  const clock = new ManualClock();
  const work = clock.sleep("the work", 900, signal).then(() => 7);
  const look = async (): Promise<MachineState> => assert.fail("nothing is to be observed");
  const outcome = besideLooks(clock, { wait: "a", work, look }, signal);
  await clock.advance(900);
  assert.deepEqual(await outcome, { result: 7 });
  assert.deepEqual(clock.waits, []);
});

test("the machine is observed each second, until something else than a disk is short", async () => {
  const clock = new ManualClock();
  const ofDisk = thresholdOf("nodefs.available", "1Gi");
  const seen = [stateWith([ofDisk]), new Error("cannot look"), stateWith([ofDisk, thresholdOf("pid.available", "9")])];
  const all = [...seen];
  const look = async (): Promise<MachineState> => {
    const next = all.shift();
    if (next instanceof Error) throw next;
    return next ?? assert.fail("the shortage was seen");
  };
  const hung = Promise.withResolvers<void>();
  const outcome = besideLooks(clock, { wait: "a", work: hung.promise, look }, signal);
  await clock.advance(3000);
  assert.deepEqual(await outcome, { urgent: seen[2] });
  hung.reject(new Error("which nobody waits for any more"));
  await clock.advance(0);
});

test("the error of the work, and the end of the wait, reach the caller", async () => {
  const clock = new ManualClock();
  const look = async (): Promise<MachineState> => stateWith([]);
  const failing = clock.sleep("the work", 1500, signal).then(() => Promise.reject(new Error("no disk")));
  const failed = assert.rejects(besideLooks(clock, { wait: "a", work: failing, look }, signal), /^Error: no disk$/u);
  await clock.advance(1500);
  await failed;
  const ends = new AbortController();
  const never = new Promise<void>(() => {});
  const ended = assert.rejects(besideLooks(clock, { wait: "a", work: never, look }, ends.signal), /^Error: the end$/u);
  ends.abort(new Error("the end"));
  await clock.advance(1000);
  await ended;
});

test("looks beside work that hangs leave nothing with it", async () => {
  let thens = 0;
  class Counted<T> extends Promise<T> {
    override then<A = T, B = never>(...reactions: Parameters<Promise<T>["then"]>): Promise<A | B> {
      thens++;
      return super.then(...reactions) as Promise<A | B>;
    }
  }
  const clock = new ManualClock();
  const { promise: work, resolve } = Counted.withResolvers<number>();
  const outcome = besideLooks(clock, { wait: "a", work, look: async () => stateWith([]) }, signal);
  await clock.advance(2000);
  const before = thens;
  await clock.advance(100_000);
  assert.ok(thens - before <= 1, `${thens - before} reactions`);
  resolve(7);
  assert.deepEqual(await outcome, { result: 7 });
});
