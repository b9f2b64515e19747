import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../sim/clock.ts";
import { simPressureStall } from "../sim/pressure-stall.ts";
import { Places } from "./places.ts";

const never = new AbortController().signal;

function scene(limit: number, isBusy = () => false) {
  const time = new SimClock(1_700_000_000_000);
  const clock = time.incarnation();
  const stalls = simPressureStall(time, isBusy);
  const places = new Places({ clock, stalls }, { kind: "a test's work", limit, patienceMs: 1000 });
  const began = time.nowMs;
  const starts: [name: string, atMs: number][] = [];
  const work = async (name: string, ...partsMs: readonly number[]): Promise<void> => {
    using place = await places.take("first", never);
    starts.push([name, time.nowMs - began]);
    for (const [index, ms] of partsMs.entries()) {
      if (index > 0) place.renew();
      await clock.sleep(name, ms);
    }
  };
  return { time, places, starts, work };
}

test("hanging work gives its place to others, which get a shorter limit until it ends", async () => {
  const { time, places, starts, work } = scene(1);
  const all = [work("hangs", 60_000), work("b", 50), work("c", 500), work("d", 500), work("e", 500)];
  await time.run(time.nowMs + 3000);
  assert.deepEqual(starts, [
    ["hangs", 0],
    ["b", 1000],
    ["c", 1050],
    ["d", 1150],
    ["e", 1250],
  ]);
  assert.deepEqual(places.load, { held: 0, waiting: 0, overdue: 1 });
  await time.run(time.nowMs + 60_000);
  await Promise.all(all);
  assert.deepEqual(places.load, { held: 0, waiting: 0, overdue: 0 });
  // Patience is back.
  await Promise.all([work("f", 900), work("g", 10), time.run(time.nowMs + 2000)]);
  const [f, g] = starts.slice(-2).map(([, atMs]) => atMs);
  assert.equal((g ?? 0) - (f ?? 0), 900);
});

test("patience stays while fewer are overdue than there are places", async () => {
  const { time, places, starts, work } = scene(2);
  const all = [work("hangs", 60_000), ...["b", "c", "d", "e"].map((name) => work(name, 900))];
  await time.run(time.nowMs + 3000);
  assert.deepEqual(starts, [
    ["hangs", 0],
    ["b", 0],
    ["c", 900],
    ["d", 1000],
    ["e", 1800],
  ]);
  assert.deepEqual(places.load, { held: 0, waiting: 0, overdue: 1 });
  await time.run(time.nowMs + 60_000);
  await Promise.all(all);
});

test("on a busy machine slow work keeps its place, and hanging work loses it after some limits", async () => {
  let isBusy = true;
  const { time, places, starts, work } = scene(1, () => isBusy);
  const slow = [work("slow", 4000), work("next", 3000), work("last", 10)];
  await time.run(time.nowMs + 10_000);
  await Promise.all(slow);
  assert.deepEqual(starts, [
    ["slow", 0],
    ["next", 4000],
    ["last", 7000],
  ]);
  const began = time.nowMs;
  const all = [work("hangs", 60_000), work("b", 10)];
  await time.run(began + 10_000);
  assert.equal((starts.at(-1)?.[1] ?? 0) - (starts.at(-2)?.[1] ?? 0), 100 + 5 * 900);
  await time.run(began + 60_000);
  await Promise.all(all);
  isBusy = false;
  const idle = [work("hangs in peace", 60_000), work("c", 10)];
  await time.run(time.nowMs + 70_000);
  await Promise.all(idle);
  assert.equal((starts.at(-1)?.[1] ?? 0) - (starts.at(-2)?.[1] ?? 0), 1000);
  assert.deepEqual(places.load, { held: 0, waiting: 0, overdue: 0 });
});

test("a hundred that all hang are all begun within seconds", async () => {
  const { time, starts, work } = scene(6);
  const all = Array.from({ length: 100 }, (_, index) => work(`${index}`, 120_000));
  await time.run(time.nowMs + 10_000);
  assert.equal(starts.length, 100);
  assert.ok((starts.at(-1)?.[1] ?? Infinity) <= 1000 + 16 * 100, `${starts.at(-1)?.[1]}`);
  await time.run(time.nowMs + 120_000);
  await Promise.all(all);
});

test("work in parts keeps its place, each part within the limit", async () => {
  const { time, places, starts, work } = scene(1);
  const all = [work("parts", 900, 900, 900), work("next", 10)];
  await time.run(time.nowMs + 5000);
  await Promise.all(all);
  assert.deepEqual(starts, [
    ["parts", 0],
    ["next", 2700],
  ]);
  const late = [work("hangs in its second part", 900, 60_000, 10), work("last", 10)];
  const began = time.nowMs;
  await time.run(began + 5000);
  assert.equal((starts.at(-1)?.[1] ?? 0) - (starts.at(-2)?.[1] ?? 0), 1900);
  await time.run(began + 100_000);
  await Promise.all(late);
  assert.deepEqual(places.load, { held: 0, waiting: 0, overdue: 0 });
});

test("a place that was given back stays so", async () => {
  const { places } = scene(1);
  const place = await places.take("later", never);
  place[Symbol.dispose]();
  place[Symbol.dispose]();
  using _other = await places.take("later", never);
  assert.deepEqual(places.load, { held: 1, waiting: 0, overdue: 0 });
});
