import assert from "node:assert/strict";
import { test } from "node:test";
import { CallScope } from "./call-scope.ts";

const dayMs = 86_400_000;

test("the deadline is told in at most eight digits, or not at all", () => {
  const told = (timeoutMs: number): string | undefined => {
    using scope = new CallScope({ timeoutMs });
    return scope.headers["grpc-timeout"];
  };
  assert.equal(told(0.2), "1m");
  assert.equal(told(120_000), "120000m");
  assert.equal(told(99_999_999), "99999999m");
  assert.equal(told(100_000_000), "100000S");
  assert.equal(told(4_000 * dayMs), undefined);
});

const never = (): Promise<never> => new Promise(() => {});

test("a deadline of months does not fire at once", async () => {
  using scope = new CallScope({ timeoutMs: 60 * dayMs });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(scope.end, undefined);
  assert.equal(scope.timeIsUp, false);
});

test("the first end counts, and ends the work", async () => {
  const controller = new AbortController();
  using scope = new CallScope({ signal: controller.signal, timeoutMs: 5 });
  let undone = 0;
  await assert.rejects(scope.within(never(), () => undone++));
  controller.abort(new Error("late"));
  scope.leave();
  assert.equal(scope.end, "deadline");
  assert.equal(scope.reason, undefined);
  assert.equal(undone, 1);
  await assert.rejects(scope.within(Promise.resolve("too late"), () => undone++));
  assert.equal(undone, 2);
});

test("work that ends in time is what it is", async () => {
  using scope = new CallScope({ timeoutMs: 60_000 });
  assert.equal(await scope.within(Promise.resolve("done")), "done");
  await assert.rejects(scope.within(Promise.reject(new Error("its own"))), /its own/);
  assert.equal(scope.end, undefined);
});

test("a disposed scope ignores its caller's signal", () => {
  const controller = new AbortController();
  const scope = new CallScope({ signal: controller.signal });
  scope[Symbol.dispose]();
  controller.abort();
  assert.equal(scope.end, undefined);
});
