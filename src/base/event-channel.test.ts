import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { EventChannel } from "./event-channel.ts";

describe("EventChannel", () => {
  const { signal } = new AbortController();

  test("rejects what does not fit and delivers the rest in order", async () => {
    const channel = new EventChannel<number>(2);
    assert.deepEqual([channel.offer(1), channel.offer(2), channel.offer(3)], [true, true, false]);
    assert.deepEqual(await channel.take(signal), [1, 2]);
    assert.ok(channel.offer(4));
  });

  test("a reader waits for the next event", async () => {
    const channel = new EventChannel<number>(2);
    const taken = channel.take(signal);
    channel.offer(1);
    assert.deepEqual(await taken, [1]);
  });

  test("a reader that is called off stops waiting", async () => {
    const channel = new EventChannel<number>(2);
    const controller = new AbortController();
    const taken = channel.take(controller.signal);
    controller.abort(new Error("canceled"));
    await assert.rejects(taken, /canceled/);
  });
});
