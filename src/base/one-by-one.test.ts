import assert from "node:assert/strict";
import { test } from "node:test";
import { oneByOne } from "./one-by-one.ts";

const never = new AbortController().signal;

test("what fails for one item is done for the others, and all different failures are told in the end", async () => {
  const done: number[] = [];
  const work = async (item: number): Promise<void> => {
    done.push(item);
    if (item % 2 === 1) throw new Error(item < 4 ? "an odd one" : `${item} is odd`);
  };
  const message = "an odd one; 5 is odd";
  await assert.rejects(oneByOne([1, 2, 3, 4, 5], never, work), { name: "AggregateError", message });
  assert.deepEqual(done, [1, 2, 3, 4, 5]);
  await oneByOne([2, 4], never, work);
});

test("of many failures ten are told, and how many more there are", async () => {
  const items = Array.from({ length: 12 }, (_, index) => index);
  const fail = async (item: number): Promise<void> => Promise.reject(new Error(`${item}`));
  const message = "0; 1; 2; 3; 4; 5; 6; 7; 8; 9; and 2 more";
  await assert.rejects(oneByOne(items, never, fail), { message });
});

test("an aborted signal ends the work with its reason, also between two items", async () => {
  for (const fails of [true, false]) {
    const stop = new AbortController();
    const done: number[] = [];
    const work = async (item: number): Promise<void> => {
      done.push(item);
      stop.abort(new Error("it is over"));
      if (fails) throw new Error("aborted");
    };
    await assert.rejects(oneByOne([1, 2], stop.signal, work), { message: "it is over" });
    assert.deepEqual(done, [1]);
  }
});
