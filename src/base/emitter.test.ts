import assert from "node:assert/strict";
import { test } from "node:test";
import { Emitter } from "./emitter.ts";

test("listeners are called in order, until they are disposed of", () => {
  const emitter = new Emitter<number>();
  const told: string[] = [];
  emitter.on((value) => void told.push(`first ${value}`));
  {
    using _second = emitter.on((value) => void told.push(`second ${value}`));
    emitter.emit(1);
  }
  emitter.emit(2);
  assert.deepEqual(told, ["first 1", "second 1", "first 2"]);
});

test("a listener that is added by another hears the next event only", () => {
  const emitter = new Emitter<number>();
  const heard: string[] = [];
  using first = emitter.on((value) => {
    heard.push(`first ${value}`);
    if (value === 1) emitter.on((later) => heard.push(`second ${later}`));
  });
  emitter.emit(1);
  emitter.emit(2);
  first[Symbol.dispose]();
  emitter.emit(3);
  assert.deepEqual(heard, ["first 1", "first 2", "second 2", "second 3"]);
});
