import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { SimClock } from "../../sim/clock.ts";
import { type Heap, keepLean } from "./heap.ts";

const mebibyte = 1 << 20;

interface Costs {
  readonly collectMs?: number;
  readonly shrinkMs?: number;
}

/** Of what a heap uses beyond `live` bytes, `young` are collected with the young generation. */
function heapOf(live: number, { collectMs = 0, shrinkMs = 0 }: Costs = {}) {
  const state = { used: live, young: 0, held: live, cpu: 0 };
  const times = { young: [] as number[], collected: [] as number[], shrunk: [] as number[], released: [] as number[] };
  const heap: Heap = {
    usedBytes: () => state.used + state.young,
    heldBytes: () => (state.held = Math.max(state.held, state.used + state.young)),
    cpuMs: () => state.cpu,
    collectYoung: () => {
      state.young = 0;
      times.young.push(clock.nowMs);
    },
    collect: () => {
      [state.used, state.young] = [live, 0];
      state.cpu += collectMs;
      times.collected.push(clock.nowMs);
    },
    shrink: () => {
      [state.used, state.young, state.held] = [live, 0, live];
      state.cpu += shrinkMs;
      times.shrunk.push(clock.nowMs);
    },
    releasePages: () => {
      state.cpu += 10;
      times.released.push(clock.nowMs);
    },
  };
  const clock = new SimClock(1_700_000_000_000);
  const stop = new AbortController();
  const done = keepLean(heap, clock.incarnation(), stop.signal);
  const end = async (): Promise<void> => {
    stop.abort();
    await clock.run(clock.nowMs + 10_000);
    await done;
  };
  return { state, times, clock, [Symbol.asyncDispose]: end };
}

test("the heap is shrunk once the process is calm, and again after a burst", async () => {
  await using scene = heapOf(30 * mebibyte);
  const { state, times, clock } = scene;
  await clock.run(60_000);
  assert.deepEqual(times.shrunk, [15_000]);
  state.used = 33 * mebibyte;
  await clock.run(120_000);
  assert.deepEqual(times.shrunk, [15_000]);
  state.used = 60 * mebibyte;
  // A third of a core until 180 s.
  for (let atMs = 120_000; atMs < 180_000; atMs += 1000) {
    state.cpu += 333;
    await clock.run(atMs);
  }
  assert.deepEqual(times.shrunk, [15_000]);
  await clock.run(300_000);
  assert.equal(times.shrunk.length, 2);
  assert.ok((times.shrunk[1] ?? 0) <= 210_000, String(times.shrunk));
  assert.deepEqual(times.collected, []);
});

test("a calm node's few megabytes are collected, not shrunk", async () => {
  await using scene = heapOf(30 * mebibyte, { collectMs: 100, shrinkMs: 300 });
  const { state, times, clock } = scene;
  await clock.run(20_000);
  state.used += 5 * mebibyte;
  state.cpu += 2000;
  await clock.run(40_000);
  assert.deepEqual([times.shrunk, times.collected], [[15_000], [40_000]]);
  // Not for more than a fifth of the work since.
  state.used += 5 * mebibyte;
  state.cpu += 450;
  await clock.run(60_000);
  assert.equal(times.collected.length, 1);
  state.cpu += 60;
  await clock.run(80_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [1, 2]);
  // Without growth, after much work.
  state.cpu += 4500;
  await clock.run(100_000);
  assert.equal(times.collected.length, 2);
  state.cpu += 600;
  await clock.run(130_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [1, 3]);
});

test("the program's pages are released after some work of a calm process, unless a collection has just done so", async () => {
  await using scene = heapOf(30 * mebibyte, { collectMs: 100 });
  const { state, times, clock } = scene;
  await clock.run(20_000);
  assert.deepEqual([times.shrunk.length, times.released], [1, []]);
  state.cpu += 900;
  await clock.run(40_000);
  assert.deepEqual(times.released, []);
  state.cpu += 200;
  await clock.run(60_000);
  assert.equal(times.released.length, 1);
  state.cpu += 900;
  state.used += 5 * mebibyte;
  await clock.run(80_000);
  state.cpu += 500;
  await clock.run(100_000);
  assert.deepEqual([times.collected.length, times.released.length], [1, 1]);
});

test("a young generation that has grown is collected alone", async () => {
  await using scene = heapOf(30 * mebibyte, { collectMs: 100 });
  const { state, times, clock } = scene;
  await clock.run(20_000);
  times.young.length = 0;
  state.cpu += 1000;
  state.young = 5 * mebibyte;
  await clock.run(40_000);
  state.young = 5 * mebibyte;
  await clock.run(60_000);
  assert.deepEqual([times.young.length, times.collected.length, times.shrunk.length], [2, 0, 1]);
  [state.young, state.used] = [3 * mebibyte, 34 * mebibyte];
  await clock.run(80_000);
  assert.deepEqual([times.young.length, times.collected.length, times.shrunk.length], [3, 1, 1]);
});

test("what V8 has collected itself is not collected again, and what it keeps of a burst is given back", async () => {
  await using scene = heapOf(30 * mebibyte, { collectMs: 100, shrinkMs: 300 });
  const { state, times, clock } = scene;
  await clock.run(20_000);
  state.held += 7 * mebibyte;
  state.cpu += 2000;
  await clock.run(60_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [1, 0]);
  state.held += 2 * mebibyte;
  await clock.run(80_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [2, 0]);
});

test("the heap is not shrunk in the pauses of a burst, nor at the start of one", async () => {
  await using scene = heapOf(30 * mebibyte);
  const { state, times, clock } = scene;
  await clock.run(20_000);
  assert.deepEqual(times.shrunk, [15_000]);
  state.used = 50 * mebibyte;
  // A tenth of a core on the whole.
  for (let atMs = 22_000; atMs < 82_000; atMs += 10_000) {
    state.cpu += 1000;
    await clock.run(atMs);
  }
  assert.deepEqual(times.shrunk, [15_000]);
  await clock.run(120_000);
  assert.deepEqual(times.shrunk, [15_000, 80_000]);
  assert.deepEqual(times.collected, []);
});

test("a large heap that takes long to collect is collected less often", async () => {
  await using scene = heapOf(400 * mebibyte, { collectMs: 1500, shrinkMs: 1500 });
  const { state, times, clock } = scene;
  await clock.run(20_000);
  assert.equal(times.shrunk.length, 1);
  state.used += 40 * mebibyte;
  state.cpu += 20_000;
  await clock.run(60_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [1, 0]);
  state.cpu += 10_000;
  await clock.run(120_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [1, 1]);
  state.used += 60 * mebibyte;
  await clock.run(180_000);
  assert.equal(times.collected.length, 1);
  state.cpu += 7_500;
  await clock.run(240_000);
  assert.equal(times.collected.length, 2);
  state.used += 110 * mebibyte;
  state.cpu += 7_500;
  await clock.run(300_000);
  assert.deepEqual([times.shrunk.length, times.collected.length], [2, 2]);
});

test("the real heap returns memory to the machine", async () => {
  const program = `
    import { systemHeap } from ${JSON.stringify(new URL("heap.ts", import.meta.url).href)};
    const heap = systemHeap();
    const rss = () => process.memoryUsage.rss();
    globalThis.junk = Array.from({ length: 400_000 }, (_, index) => ({ index, text: "text " + index }));
    const [held, full] = [heap.heldBytes(), rss()];
    globalThis.junk = undefined;
    heap.collectYoung();
    heap.collect();
    heap.shrink();
    console.log(JSON.stringify({ held: held - heap.heldBytes(), resident: full - rss(), cpu: heap.cpuMs() }));`;
  const args = ["--max-semi-space-size=2", "--input-type=module-typescript", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { held, resident, cpu } = JSON.parse(stdout) as { held: number; resident: number; cpu: number };
  assert.ok(held > 20 * mebibyte, `V8 gave back ${held} bytes`);
  assert.ok(resident > 10 * mebibyte, `the process gave back ${resident} bytes`);
  assert.ok(cpu > 0);
});
