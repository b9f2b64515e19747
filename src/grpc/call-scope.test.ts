import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { CallScope } from "./call-scope.ts";

const dayMs = 86_400_000;

test("the deadline header has at most eight digits, or is omitted", () => {
  const told = (timeoutMs: number): string | undefined => {
    using scope = new CallScope(new ManualClock(), "Version", { timeoutMs });
    return scope.timeout;
  };
  assert.equal(told(0.2), "1m");
  assert.equal(told(120_000), "120000m");
  assert.equal(told(99_999_999), "99999999m");
  assert.equal(told(100_000_000), "100000S");
  assert.equal(told(4_000 * dayMs), undefined);
});

const never = (): Promise<never> => new Promise(() => {});

test("a deadline is a wait of the clock with the method's name", async () => {
  const clock = new ManualClock();
  using scope = new CallScope(clock, "StopContainer", { timeoutMs: 60 * dayMs });
  assert.deepEqual(clock.waits, ["gRPC StopContainer"]);
  await clock.advance(60 * dayMs - 1000);
  assert.deepEqual([scope.end, scope.timeIsUp], [undefined, false]);
  await clock.advance(1000);
  assert.deepEqual([scope.end, scope.timeIsUp], ["deadline", true]);
  assert.deepEqual(clock.waits, []);
});

test("the first end counts, and ends the work", async () => {
  const controller = new AbortController();
  const clock = new ManualClock();
  using scope = new CallScope(clock, "Version", { signal: controller.signal, timeoutMs: 5 });
  let undone = 0;
  const work = scope.within(never(), () => undone++);
  await Promise.all([assert.rejects(work), clock.advance(5)]);
  controller.abort(new Error("late"));
  scope.leave();
  assert.equal(scope.end, "deadline");
  assert.equal(scope.reason, undefined);
  assert.equal(undone, 1);
  await assert.rejects(scope.within(Promise.resolve("too late"), () => undone++));
  assert.equal(undone, 2);
});

test("work that ends in time keeps its result", async () => {
  using scope = new CallScope(new ManualClock(), "Version", { timeoutMs: 60_000 });
  assert.equal(await scope.within(Promise.resolve("done")), "done");
  await assert.rejects(scope.within(Promise.reject(new Error("its own"))), /its own/);
  assert.equal(scope.end, undefined);
});

test("a disposed scope ignores its caller's signal", () => {
  const controller = new AbortController();
  const scope = new CallScope(new ManualClock(), "Version", { signal: controller.signal });
  scope[Symbol.dispose]();
  controller.abort();
  assert.equal(scope.end, undefined);
});
