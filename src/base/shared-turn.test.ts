import assert from "node:assert/strict";
import { test } from "node:test";
import { Semaphore } from "./semaphore.ts";
import { SharedTurn } from "./shared-turn.ts";

const { signal } = new AbortController();

test("a group holds one place until its last holder gives it back", async () => {
  const semaphore = new Semaphore(1);
  const shared = new SharedTurn(semaphore);
  const [first, second] = await Promise.all([shared.acquire(signal), shared.acquire(signal)]);
  assert.deepEqual(semaphore.load, { held: 1, waiting: 0 });
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const other = semaphore.acquire(signal);
  assert.deepEqual(semaphore.load, { held: 1, waiting: 1 });
  second[Symbol.dispose]();
  using _other = await other;
  assert.deepEqual(semaphore.load, { held: 1, waiting: 0 });
});

test("between two holders, others have their turn", async () => {
  const semaphore = new Semaphore(1);
  const shared = new SharedTurn(semaphore);
  for (let round = 0; round < 2; round++) {
    const holder = await shared.acquire(signal);
    const other = semaphore.acquire(signal);
    holder[Symbol.dispose]();
    (await other)[Symbol.dispose]();
  }
  assert.deepEqual(semaphore.load, { held: 0, waiting: 0 });
});

test("a group whose signal aborts while it waits holds nothing, and may try again", async () => {
  const semaphore = new Semaphore(1);
  const shared = new SharedTurn(semaphore);
  const other = await semaphore.acquire(signal);
  const ends = new AbortController();
  const waiting = [shared.acquire(ends.signal), shared.acquire(ends.signal)];
  ends.abort(new Error("called off"));
  for (const one of waiting) await assert.rejects(one, /^Error: called off$/);
  other[Symbol.dispose]();
  assert.deepEqual(semaphore.load, { held: 0, waiting: 0 });
  using _again = await shared.acquire(signal);
  assert.equal(semaphore.load.held, 1);
});
