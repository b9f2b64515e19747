import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { TimerQueue } from "./timer-queue.ts";

describe("TimerQueue", () => {
  test("ends waits in the order of their times, whatever is cancelled meanwhile", async () => {
    const delays = fc.array(fc.tuple(fc.nat(100), fc.boolean()), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(delays, async (waits) => {
        const clock = new ManualClock(0);
        const queue = new TimerQueue(clock, "test");
        const ended: number[] = [];
        const handles = waits.map(([delayMs], index) => queue.at(delayMs, () => ended.push(index)));
        for (const [index, [, cancelled]] of waits.entries()) if (cancelled) handles[index]?.[Symbol.dispose]();
        await clock.advance(101);
        const expected = waits
          .map(([delayMs, cancelled], index) => ({ delayMs, cancelled, index }))
          .filter(({ cancelled }) => !cancelled)
          .toSorted((a, b) => a.delayMs - b.delayMs || a.index - b.index)
          .map(({ index }) => index);
        assert.deepEqual(ended, expected);
        assert.equal(queue.size, 0);
        assert.deepEqual(clock.waits, []);
      }),
      { numRuns: 200 },
    );
  });

  test("a wait that begins while another ends ends in its own time", async () => {
    const clock = new ManualClock(0);
    const queue = new TimerQueue(clock, "test");
    const ended: string[] = [];
    queue.at(10, () => {
      ended.push(`first at ${clock.monotonic()}`);
      queue.at(5, () => ended.push(`overdue at ${clock.monotonic()}`));
      queue.at(20, (dueMs) => ended.push(`second, due ${dueMs}`));
    });
    await clock.advance(30);
    assert.deepEqual(ended, ["first at 10", "overdue at 10", "second, due 20"]);
  });

  test("uses one timer of the clock for all waits, and none when there are none", async () => {
    const clock = new ManualClock(0);
    const queue = new TimerQueue(clock, "many waits");
    const handles = Array.from({ length: 100 }, (_, index) => queue.at(1000 - index, () => {}));
    assert.deepEqual(clock.waits, ["many waits"]);
    for (const handle of handles) handle[Symbol.dispose]();
    assert.deepEqual(clock.waits, []);
  });

  test("many waits due at once leave turns for other work", async () => {
    const clock = new ManualClock(0);
    const queue = new TimerQueue(clock, "crowd");
    let ended = 0;
    for (let index = 0; index < 200; index++) queue.at(10, () => ended++);
    clock.timer("other work", 10, () => assert.equal(ended, 64));
    await clock.advance(10);
    assert.equal(ended, 200);
  });

  test("nothing ends after it was disposed of", async () => {
    const clock = new ManualClock(0);
    const queue = new TimerQueue(clock, "test");
    queue.at(1, () => assert.fail("ended"));
    queue[Symbol.dispose]();
    await clock.advance(10);
  });

  test("rejects a wait without a time: later ones would never end", () => {
    const queue = new TimerQueue(new ManualClock(0), "test");
    assert.throws(() => queue.at(Number.NaN, () => {}), /a wait has a time to end/);
  });
});
