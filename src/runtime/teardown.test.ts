import assert from "node:assert/strict";
import { test } from "node:test";
import { Semaphore } from "../base/semaphore.ts";
import { SimClock } from "../sim/clock.ts";
import { inTeardown } from "./teardown.ts";

function scene(places: number) {
  const time = new SimClock(1_700_000_000_000);
  const deps = { clock: time.incarnation(), teardowns: new Semaphore(places) };
  const done: [name: string, atMs: number, queuedMs: number][] = [];
  const began = time.nowMs;
  const { signal } = new AbortController();
  const work = (name: string, ms: number, turn: "first" | "later"): Promise<void> =>
    inTeardown(deps, turn, signal, async (queuedMs) => {
      await deps.clock.sleep(name, ms);
      done.push([name, time.nowMs - began, queuedMs]);
    });
  return { time, deps, done, work };
}

test("stops go before removals that came earlier, and it is known how long each waited", async () => {
  const { time, done, work } = scene(1);
  const all = [work("stop a", 100, "first"), work("remove a", 30, "later"), work("stop b", 100, "first")];
  await time.run(time.nowMs + 1000);
  await Promise.all(all);
  assert.deepEqual(done, [
    ["stop a", 100, 0],
    ["stop b", 200, 100],
    ["remove a", 230, 200],
  ]);
});

test("what hangs gives its place to others after two seconds, and gives no second one when it ends", async () => {
  const { time, deps, done, work } = scene(1);
  const all = [work("hangs", 60_000, "first"), work("b", 100, "first"), work("c", 100_000, "first")];
  await time.run(time.nowMs + 3000);
  assert.deepEqual(done, [["b", 2100, 2000]]);
  assert.deepEqual(deps.teardowns.load, { held: 1, waiting: 0 });
  await time.run(time.nowMs + 200_000);
  await Promise.all(all);
  assert.deepEqual(deps.teardowns.load, { held: 0, waiting: 0 });
});

test("a removal waits no longer than five seconds, and takes no place away then", async () => {
  const { time, deps, done, work } = scene(1);
  // Stops come all the time.
  const stops = Array.from({ length: 8 }, (_, index) => work(`stop ${index}`, 1000, "first"));
  const removal = work("remove", 100, "later");
  await time.run(time.nowMs + 20_000);
  await Promise.all([...stops, removal]);
  assert.deepEqual(
    done.find(([name]) => name === "remove"),
    ["remove", 5100, 5000],
  );
  assert.deepEqual(done.at(-1), ["stop 7", 8000, 7000]);
  assert.deepEqual(deps.teardowns.load, { held: 0, waiting: 0 });
});

test("who is called off while it waits does nothing", async () => {
  const { time, deps, work } = scene(1);
  const holder = work("holder", 500, "first");
  const controller = new AbortController();
  const waits = inTeardown(deps, "first", controller.signal, async () => assert.fail("it was called off"));
  controller.abort(new Error("called off"));
  await assert.rejects(waits, /called off/);
  await time.run(time.nowMs + 1000);
  await holder;
});
