import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { delayedSignal, onAbort } from "./abort.ts";

test("a delayed signal aborts that much later, with the same reason", async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  using delayed = delayedSignal(clock, "an end", controller.signal, 1000);
  controller.abort(new Error("called off"));
  await clock.advance(999);
  assert.equal(delayed.signal.aborted, false);
  await clock.advance(1);
  assert.match(String(delayed.signal.reason), /called off/);
});

test("a delayed signal that is disposed of never aborts and leaves no timer", async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  {
    using _delayed = delayedSignal(clock, "an end", controller.signal, 1000);
    controller.abort();
  }
  assert.deepEqual(clock.waits, []);
});

test("those that listen are called in their order, once, and not when they are disposed of, even by one before them", () => {
  const controller = new AbortController();
  const called: string[] = [];
  const gone = onAbort(controller.signal, () => called.push("gone"));
  onAbort(controller.signal, () => {
    called.push("first");
    late[Symbol.dispose]();
  });
  const late = onAbort(controller.signal, () => called.push("late"));
  onAbort(controller.signal, () => called.push("last"));
  gone[Symbol.dispose]();
  controller.abort();
  assert.deepEqual(called, ["first", "last"]);
});

test("one callback that listens twice is called for each that is left", () => {
  const controller = new AbortController();
  let calls = 0;
  const callback = (): void => void calls++;
  const first = onAbort(controller.signal, callback);
  onAbort(controller.signal, callback);
  first[Symbol.dispose]();
  controller.abort();
  assert.equal(calls, 1);
});

test("a listener of an aborted signal is called at once", () => {
  let calls = 0;
  onAbort(AbortSignal.abort(), () => calls++);
  assert.equal(calls, 1);
});

test("a signal has one listener, however many listen", () => {
  const { signal } = new AbortController();
  for (let index = 0; index < 100; index++) onAbort(signal, () => {});
  assert.equal(getEventListeners(signal, "abort").length, 1);
});
