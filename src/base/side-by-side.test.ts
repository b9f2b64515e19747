import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { bothEnded, eachOf, settleAll } from "./side-by-side.ts";

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

test("several failures become one error", async () => {
  const fails = (message: string): Promise<void> => Promise.reject(new Error(message));
  await settleAll("work", [Promise.resolve(), Promise.resolve()]);
  await assert.rejects(settleAll("work", [Promise.resolve(), fails("one")]), { message: "one" });
  await assert.rejects(settleAll("work", [fails("one"), fails("two")]), { message: "work: one; two" });
});

test("so many at a time are worked on in order, each once", async () => {
  const begun: number[] = [];
  let [atOnce, most] = [0, 0];
  await eachOf([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    most = Math.max(most, ++atOnce);
    await sleep(1);
    atOnce--;
  });
  assert.deepEqual([begun, most], [[1, 2, 3, 4, 5], 2]);
  await eachOf([], 2, () => Promise.reject(new Error("nothing to work on")));
});

test("after a failure nothing more starts, and work in progress is awaited", async () => {
  const [begun, ended]: number[][] = [[], []];
  const work = async (item: number): Promise<void> => {
    begun?.push(item);
    if (item === 2) throw new Error("second");
    await sleep(5);
    ended?.push(item);
  };
  await assert.rejects(eachOf([1, 2, 3, 4, 5], 3, work), /second/);
  assert.deepEqual(
    [begun, ended],
    [
      [1, 2, 3],
      [1, 3],
    ],
  );
});
