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

test("a deadline of months does not fire at once", async () => {
  using scope = new CallScope({ timeoutMs: 60 * dayMs });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(scope.signal.aborted, false);
  assert.equal(scope.timeIsUp, false);
});

test("the first end counts", async () => {
  const controller = new AbortController();
  using scope = new CallScope({ signal: controller.signal, timeoutMs: 5 });
  await new Promise((resolve) => scope.signal.addEventListener("abort", resolve));
  controller.abort(new Error("late"));
  scope.leave();
  assert.equal(scope.end, "deadline");
  assert.equal(scope.reason, undefined);
});

test("a disposed scope ignores its caller's signal", () => {
  const controller = new AbortController();
  const scope = new CallScope({ signal: controller.signal });
  scope[Symbol.dispose]();
  controller.abort();
  assert.equal(scope.signal.aborted, false);
});
