import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { Emitter } from "../base/emitter.ts";
import { listening } from "../base/settling.ts";
import { pauseBeforeRetry } from "./retry-pause.ts";

const { signal } = new AbortController();

test("a pause doubles with each failure, and a request ends only the one that lasts", async () => {
  const clock = new ManualClock();
  const retries = new Emitter();
  const pause = (failures: number): { isOver: boolean } => {
    const state = { isOver: false };
    void pauseBeforeRetry(clock, "another try", { failures, retries }, signal).then(() => (state.isOver = true));
    return state;
  };
  const first = pause(4);
  await clock.advance(7999);
  assert.equal(first.isOver, false);
  await clock.advance(1);
  assert.equal(first.isOver, true);
  const second = pause(5);
  await clock.advance(1000);
  retries.emit();
  await settle();
  assert.equal(second.isOver, true);
  assert.deepEqual(clock.waits, []);
  const third = pause(6);
  await clock.advance(31_999);
  assert.equal(third.isOver, false);
  await clock.advance(1);
  assert.equal(third.isOver, true);
});

test("the end of what it waits for ends a pause, and until then the pauses leave nothing with it", async () => {
  const clock = new ManualClock();
  const drivers = Promise.withResolvers<void>();
  let thens = 0;
  const then = drivers.promise.then.bind(drivers.promise);
  drivers.promise.then = (...reactions) => {
    thens++;
    return then(...reactions);
  };
  const pause = (): Promise<void> =>
    pauseBeforeRetry(clock, "another try", { failures: 0, until: drivers.promise }, signal);
  for (let tries = 0; tries < 1000; tries++) {
    const paused = pause();
    await clock.advance(500);
    await paused;
  }
  assert.deepEqual([thens, listening(drivers.promise)], [1, 0]);
  const last = pause();
  drivers.resolve();
  await last;
  assert.deepEqual(clock.waits, []);
});
