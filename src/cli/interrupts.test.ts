import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { Interrupts } from "./interrupts.ts";

const never = AbortSignal.any([]);

test("Ctrl-C, SIGTERM and a closed terminal are counted until it is disposed of", () => {
  const source = new EventEmitter();
  {
    using interrupts = new Interrupts(source, never);
    for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"]) source.emit(signal);
    assert.deepEqual([interrupts.count, interrupts.first.aborted], [3, true]);
  }
  assert.deepEqual(source.eventNames(), []);
});

test("a closed terminal interrupts nothing that nohup runs", () => {
  const source = Object.assign(new EventEmitter(), { env: { PODWRIGHT_NOHUP: "1" } });
  using interrupts = new Interrupts(source, never);
  assert.equal(source.emit("SIGHUP"), true, "without a listener the signal would end the process");
  assert.deepEqual([interrupts.count, interrupts.first.aborted], [0, false]);
  source.emit("SIGINT");
  assert.equal(interrupts.count, 1);
});
