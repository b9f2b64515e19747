import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../../sim/clock.ts";
import { Places } from "../../base/places.ts";
import { Teardowns } from "./teardown.ts";

function scene(places: number) {
  const time = new SimClock(1_700_000_000_000);
  const clock = time.incarnation();
  const held = new Places({ clock }, { kind: "a teardown", limit: places, patienceMs: 1000 });
  const teardowns = new Teardowns(clock, held);
  const done: [name: string, atMs: number, queuedMs: number][] = [];
  const began = time.nowMs;
  const { signal } = new AbortController();
  const work = (name: string, ms: number, turn: "first" | "later"): Promise<void> =>
    teardowns.run(turn, signal, async (queuedMs) => {
      await clock.sleep(name, ms);
      done.push([name, time.nowMs - began, queuedMs]);
    });
  return { time, clock, held, teardowns, done, work };
}

test("stops precede earlier removals, and each one's wait is known", async () => {
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

test("a removal waits for stops for five seconds, then takes turns with them", async () => {
  const { time, clock, held, done, work } = scene(1);
  // Stops come all the time.
  const stops = Array.from({ length: 10 }, (_, index) => work(`stop ${index}`, 900, "first"));
  const removal = work("remove", 100, "later");
  const late = clock.sleep("more to be stopped", 6000).then(() => work("stop late", 900, "first"));
  await time.run(time.nowMs + 20_000);
  await Promise.all([...stops, removal, late]);
  assert.deepEqual(done.slice(-2), [
    ["remove", 9100, 9000],
    ["stop late", 10_000, 3100],
  ]);
  assert.deepEqual(held.load, { held: 0, waiting: 0, overdue: 0 });
});

test("a place assigned at the moment of a removal's cancellation is not lost", async () => {
  const { time, held, teardowns } = scene(1);
  for (const calledOffFirst of [true, false]) {
    const holder = await held.take("first", new AbortController().signal);
    const controller = new AbortController();
    const waits = teardowns.run("later", controller.signal, async () => assert.fail("it was called off"));
    if (calledOffFirst) controller.abort(new Error("canceled"));
    holder[Symbol.dispose]();
    if (!calledOffFirst) controller.abort(new Error("canceled"));
    await assert.rejects(waits, /canceled/);
    await time.run(time.nowMs + 10);
    assert.deepEqual(held.load, { held: 0, waiting: 0, overdue: 0 });
  }
});

test("a canceled waiter does nothing", async () => {
  const { time, teardowns, work } = scene(1);
  const holder = work("holder", 500, "first");
  const controller = new AbortController();
  const waits = teardowns.run("first", controller.signal, async () => assert.fail("it was called off"));
  controller.abort(new Error("canceled"));
  await assert.rejects(waits, /canceled/);
  await time.run(time.nowMs + 1000);
  await holder;
});
