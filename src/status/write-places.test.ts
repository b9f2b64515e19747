import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { WritePlaces } from "./write-places.ts";

const patienceMs = 2000;

test("slow writes make room for others, up to a limit, and failed pods get half of the slots", async () => {
  const clock = new ManualClock();
  let heard = 0;
  const places = new WritePlaces(clock, () => heard++);
  const held: Disposable[] = [];
  const take = (hasFailed: boolean): number => {
    const before = held.length;
    for (let place = places.take(hasFailed); place !== undefined; place = places.take(hasFailed)) held.push(place);
    return held.length - before;
  };
  assert.deepEqual([take(true), take(false)], [8, 8]);
  await clock.advance(patienceMs);
  assert.equal(heard, 16);
  const taken: number[] = [];
  for (let round = 0; round < 5; round++) {
    taken.push(take(true), take(false));
    await clock.advance(patienceMs);
  }
  assert.deepEqual(taken, [8, 8, 8, 8, 8, 8, 0, 0, 0, 0]);
  for (const place of held.splice(0, 4)) place[Symbol.dispose]();
  assert.deepEqual([take(true), take(false)], [4, 0]);
  for (const place of held) place[Symbol.dispose]();
  assert.deepEqual(clock.waits, []);
});
