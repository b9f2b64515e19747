import assert from "node:assert/strict";
import { test } from "node:test";
import { orAborted } from "./abort.ts";
import { listening, onSettled, settlesBefore } from "./settling.ts";

test("those that listen are called in their order when the promise settles, without those that are disposed of", async () => {
  for (const settles of ["resolve", "reject"] as const) {
    const awaited = Promise.withResolvers<void>();
    const called: string[] = [];
    const gone = onSettled(awaited.promise, () => called.push("gone"));
    const twice = (): void => void called.push("twice");
    onSettled(awaited.promise, twice);
    const once = onSettled(awaited.promise, twice);
    onSettled(awaited.promise, () => called.push("last"));
    gone[Symbol.dispose]();
    once[Symbol.dispose]();
    assert.equal(listening(awaited.promise), 2);
    awaited[settles](new Error("by command") as never);
    await Promise.resolve();
    assert.deepEqual([called, listening(awaited.promise)], [["twice", "last"], 0], settles);
    assert.equal(await settlesBefore(awaited.promise, () => new DisposableStack()), true, "it has settled");
  }
});

test("waits for what never comes leave nothing with it", async () => {
  let thens = 0;
  const never = new Promise<void>(() => {});
  const then = never.then.bind(never);
  never.then = (...reactions) => {
    thens++;
    return then(...reactions);
  };
  for (let waits = 0; waits < 1000; waits++) {
    const stop = new AbortController();
    const waiting = orAborted(never, stop.signal);
    assert.equal(listening(never), 1);
    stop.abort(new Error("enough"));
    await waiting;
  }
  assert.deepEqual([thens, listening(never)], [1, 0]);
});

test("a wait ends with its promise, and fails as that does", async () => {
  const { signal } = new AbortController();
  await orAborted(Promise.resolve(), signal);
  await assert.rejects(orAborted(Promise.reject(new Error("by command")), signal), /by command/u);
});
