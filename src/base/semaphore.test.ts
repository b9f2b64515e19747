import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Semaphore } from "./semaphore.ts";

describe("Semaphore", () => {
  test("holds at most its limit and serves waiters in order", async () => {
    const semaphore = new Semaphore(1);
    const order: string[] = [];
    const first = await semaphore.acquire();
    const waiters = ["a", "b"].map(async (name) => {
      using _place = await semaphore.acquire();
      order.push(name);
    });
    assert.deepEqual(semaphore.load, { held: 1, waiting: 2 });
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    await Promise.all(waiters);
    assert.deepEqual(order, ["a", "b"]);
    assert.deepEqual(semaphore.load, { held: 0, waiting: 0 });
  });

  test("serves those whose turn is first before those whose turn is later", async () => {
    const semaphore = new Semaphore(1);
    const order: string[] = [];
    const held = await semaphore.acquire();
    const waiters = (["later", "first", "later", "first"] as const).map(async (turn, index) => {
      using _place = await semaphore.acquire(undefined, turn);
      order.push(`${turn}${index}`);
    });
    held[Symbol.dispose]();
    await Promise.all(waiters);
    assert.deepEqual(order, ["first1", "first3", "later0", "later2"]);
  });

  test("a canceled waiter takes no place", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire();
    const controller = new AbortController();
    const waiting = semaphore.acquire(controller.signal);
    controller.abort(new Error("canceled"));
    await assert.rejects(waiting, /canceled/);
    held[Symbol.dispose]();
    assert.deepEqual(semaphore.load, { held: 0, waiting: 0 });
  });
});
