import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "../../sim/clock.ts";
import { patiently } from "./patiently.ts";

test("canceled work is abandoned 10 s later, unless it has ended", async () => {
  const world = new SimClock(0);
  const clock = world.incarnation();
  const calling = new AbortController();
  const begin = (): { signal: AbortSignal | undefined; end: (value: string) => void; ended: Promise<string> } => {
    const { promise, resolve } = Promise.withResolvers<string>();
    let given: AbortSignal | undefined;
    const ended = patiently(clock, "a thing", calling.signal, ({ signal }) => {
      given = signal;
      return promise;
    });
    return { signal: given, end: resolve, ended };
  };
  const [stuck, slow] = [begin(), begin()];
  await world.run(60_000);
  assert.equal(stuck.signal?.aborted, false);
  const reason = new Error("not wanted");
  calling.abort(reason);
  await world.run(69_000);
  assert.equal(stuck.signal?.aborted, false);
  slow.end("there");
  assert.equal(await slow.ended, "there");
  await world.run(71_000);
  assert.equal(stuck.signal?.reason, reason);
  assert.equal(slow.signal?.aborted, false);
});
