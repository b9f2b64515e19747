import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "./turns.ts";

test("one holder at a time for each name, and names do not wait for each other", async () => {
  const turns = new Turns();
  const order: string[] = [];
  const [first, other] = await Promise.all([turns.take("a"), turns.take("b")]);
  const second = turns.take("a").then((turn) => {
    order.push("second");
    return turn;
  });
  order.push("first");
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  const held = await second;
  assert.deepEqual(order, ["first", "second"]);
  assert.deepEqual(turns.held, ["a", "b"]);
  held[Symbol.dispose]();
  other[Symbol.dispose]();
  assert.deepEqual(turns.held, []);
});

test("a name stays held when its earlier turn is disposed of again", async () => {
  const turns = new Turns();
  const first = await turns.take("a");
  first[Symbol.dispose]();
  using _second = await turns.take("a");
  first[Symbol.dispose]();
  assert.deepEqual(turns.held, ["a"]);
});

test("nothing is kept of those that did not wait until their turn", async () => {
  const turns = new Turns();
  await assert.rejects(turns.take("a", AbortSignal.abort(new Error("over"))), /over/);
  assert.deepEqual(turns.held, []);
  const controller = new AbortController();
  const held = await turns.take("a");
  const waiting = turns.take("a", controller.signal);
  controller.abort(new Error("over"));
  await assert.rejects(waiting, /over/);
  held[Symbol.dispose]();
  assert.deepEqual(turns.held, []);
});
