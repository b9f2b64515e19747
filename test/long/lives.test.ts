import assert from "node:assert/strict";
import { test } from "node:test";
import { tellFailure } from "../../scripts/sim-failure.ts";
import { SimPool } from "../../scripts/sim-pool.ts";
import { seedOfTest } from "../support/seed.ts";

const lives = 2000;

test(`${lives} new random lives of a node break no rule`, async () => {
  await using pool = new SimPool();
  // Beyond those that each run of the tests plays.
  const first = 10_000 + seedOfTest();
  const reports = await Promise.all(Array.from({ length: lives }, (_, index) => pool.play(first + index)));
  const failed = reports.filter(({ problems }) => problems.length > 0);
  const [report] = failed;
  const told = report === undefined ? "" : await tellFailure(pool, report);
  assert.deepEqual(failed.map(({ seed }) => seed).join(" "), "", told);
});
