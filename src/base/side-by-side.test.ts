import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { bothEnded, settleAll } from "./side-by-side.ts";

test("both results come when both have ended", async () => {
  assert.deepEqual(await bothEnded(sleep(5, "a"), Promise.resolve(1)), ["a", 1]);
});

test("a failure waits for the other's end, and the first one's counts before the second's", async () => {
  let ended = false;
  const slow = sleep(5).then(() => void (ended = true));
  await assert.rejects(bothEnded(Promise.reject(new Error("first")), slow), /first/);
  assert.equal(ended, true);
  const failures = [
    sleep(5).then(() => Promise.reject(new Error("first"))),
    Promise.reject(new Error("second")),
  ] as const;
  await assert.rejects(bothEnded(...failures), /first/);
});

test("of many that failed, one error tells all", async () => {
  const fails = (message: string): Promise<void> => Promise.reject(new Error(message));
  await settleAll("work", [Promise.resolve(), Promise.resolve()]);
  await assert.rejects(settleAll("work", [Promise.resolve(), fails("one")]), { message: "one" });
  await assert.rejects(settleAll("work", [fails("one"), fails("two")]), { message: "work: one; two" });
});
