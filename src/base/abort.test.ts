import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { delayedSignal } from "./abort.ts";

test("a delayed signal aborts that much later, with the same reason", async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  using delayed = delayedSignal(clock, "an end", controller.signal, 1000);
  controller.abort(new Error("canceled"));
  await clock.advance(999);
  assert.equal(delayed.signal.aborted, false);
  await clock.advance(1);
  assert.match(String(delayed.signal.reason), /canceled/);
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
