import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { SimClock } from "../../sim/clock.ts";
import { type Heap, keepLean } from "./heap.ts";

const mebibyte = 1 << 20;

/** Shrinks to `live` bytes, using this much CPU time. */
function heapOf(live: number, costMs = 0) {
  const state = { held: live, cpu: 0, shrunkAtMs: [] as number[] };
  const heap: Heap = {
    heldBytes: () => state.held,
    cpuMs: () => state.cpu,
    shrink: () => {
      state.held = live;
      state.cpu += costMs;
      state.shrunkAtMs.push(clock.nowMs);
    },
  };
  const clock = new SimClock(1_700_000_000_000);
  const stop = new AbortController();
  return { state, clock, stop, done: keepLean(heap, clock.incarnation(), stop.signal) };
}

test("the heap is shrunk once the process is calm, and again after growth or work", async () => {
  const { state, clock, stop, done } = heapOf(30 * mebibyte);
  await clock.run(60_000);
  assert.deepEqual(state.shrunkAtMs, [15_000]);
  state.held = 33 * mebibyte;
  await clock.run(120_000);
  assert.deepEqual(state.shrunkAtMs, [15_000]);
  state.held = 60 * mebibyte;
  // A third of a core until 180 s.
  for (let atMs = 120_000; atMs < 180_000; atMs += 1000) {
    state.cpu += 333;
    await clock.run(atMs);
  }
  assert.deepEqual(state.shrunkAtMs, [15_000]);
  await clock.run(300_000);
  assert.equal(state.shrunkAtMs.length, 2);
  assert.ok((state.shrunkAtMs[1] ?? 0) <= 210_000, String(state.shrunkAtMs));
  state.cpu += 1000;
  await clock.run(400_000);
  assert.equal(state.shrunkAtMs.length, 2);
  state.cpu += 1200;
  await clock.run(450_000);
  assert.equal(state.shrunkAtMs.length, 3);
  stop.abort();
  await clock.run(470_000);
  await done;
});

test("the heap is not shrunk in the pauses of a burst, nor at the start of one", async () => {
  const { state, clock, stop, done } = heapOf(30 * mebibyte);
  await clock.run(20_000);
  assert.deepEqual(state.shrunkAtMs, [15_000]);
  state.held = 50 * mebibyte;
  // A tenth of a core on the whole.
  for (let atMs = 22_000; atMs < 82_000; atMs += 10_000) {
    state.cpu += 1000;
    await clock.run(atMs);
  }
  assert.deepEqual(state.shrunkAtMs, [15_000]);
  await clock.run(120_000);
  assert.deepEqual(state.shrunkAtMs, [15_000, 80_000]);
  stop.abort();
  await clock.run(130_000);
  await done;
});

test("a large heap that takes long to collect is collected less often", async () => {
  const { state, clock, stop, done } = heapOf(400 * mebibyte, 1500);
  await clock.run(20_000);
  assert.equal(state.shrunkAtMs.length, 1);
  state.held += 40 * mebibyte;
  state.cpu += 20_000;
  await clock.run(60_000);
  assert.equal(state.shrunkAtMs.length, 1);
  state.cpu += 10_000;
  await clock.run(120_000);
  assert.equal(state.shrunkAtMs.length, 2);
  state.held += 60 * mebibyte;
  await clock.run(180_000);
  assert.equal(state.shrunkAtMs.length, 3);
  stop.abort();
  await clock.run(200_000);
  await done;
});

test("the real heap returns memory to the machine", async () => {
  const program = `
    import { systemHeap } from ${JSON.stringify(new URL("heap.ts", import.meta.url).href)};
    const heap = systemHeap();
    const rss = () => process.memoryUsage.rss();
    globalThis.junk = Array.from({ length: 400_000 }, (_, index) => ({ index, text: "text " + index }));
    const [held, full] = [heap.heldBytes(), rss()];
    globalThis.junk = undefined;
    heap.shrink();
    console.log(JSON.stringify({ held: held - heap.heldBytes(), resident: full - rss(), cpu: heap.cpuMs() }));`;
  const args = ["--max-semi-space-size=2", "--input-type=module-typescript", "--eval", program];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const { held, resident, cpu } = JSON.parse(stdout) as { held: number; resident: number; cpu: number };
  assert.ok(held > 20 * mebibyte, `V8 gave back ${held} bytes`);
  assert.ok(resident > 10 * mebibyte, `the process gave back ${resident} bytes`);
  assert.ok(cpu > 0);
});
