import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { Interrupts } from "./interrupts.ts";

const never = AbortSignal.any([]);

test("Ctrl-C and SIGTERM are counted until it is disposed of", () => {
  const source = new EventEmitter();
  {
    using interrupts = new Interrupts(source, never);
    const counts: number[] = [];
    interrupts.onInterrupt = (count) => counts.push(count);
    for (const signal of ["SIGINT", "SIGTERM", "SIGINT"]) source.emit(signal);
    assert.deepEqual([counts, interrupts.count, interrupts.first.aborted], [[1, 2, 3], 3, true]);
  }
  assert.deepEqual(source.eventNames(), []);
});

test("one Ctrl-C that also ends the reader of the output is one interrupt, in any order", () => {
  for (const order of [
    ["SIGINT", "closed"],
    ["closed", "SIGINT"],
  ]) {
    const source = new EventEmitter();
    const output = new AbortController();
    using interrupts = new Interrupts(source, output.signal);
    for (const event of order) {
      if (event === "closed") output.abort();
      else source.emit(event);
    }
    assert.deepEqual([interrupts.count, interrupts.first.aborted], [1, true]);
    source.emit("SIGINT");
    assert.equal(interrupts.count, 2, "a second Ctrl-C is one more");
  }
});

test("a closed terminal is one interrupt, however often it is noticed", () => {
  const source = new EventEmitter();
  const output = new AbortController();
  using interrupts = new Interrupts(source, output.signal);
  source.emit("SIGHUP");
  source.emit("SIGHUP");
  output.abort();
  source.emit("SIGTERM");
  assert.deepEqual([interrupts.count, interrupts.first.aborted], [1, true]);
});

test("a closed terminal interrupts nothing that nohup runs", () => {
  const source = Object.assign(new EventEmitter(), { env: { PODWRIGHT_NOHUP: "1" } });
  using interrupts = new Interrupts(source, never);
  assert.equal(source.emit("SIGHUP"), true, "without a listener the signal would end the process");
  assert.deepEqual([interrupts.count, interrupts.first.aborted], [0, false]);
  source.emit("SIGINT");
  assert.equal(interrupts.count, 1);
});
