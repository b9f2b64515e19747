import assert from "node:assert/strict";
import { test } from "node:test";
import { SimClock } from "./clock.ts";

test("the wall clock has whole milliseconds, like the machine's, for any random offset", async () => {
  const sim = new SimClock(1_700_000_000_000);
  const clock = sim.incarnation();
  await sim.run(1.75);
  assert.equal(sim.nowMs, 1.75);
  assert.equal(clock.now(), 1_700_000_000_001);
});
