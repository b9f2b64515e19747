import assert from "node:assert/strict";
import { test } from "node:test";
import { runLife } from "./life.ts";

const lives = 25;

test(`${lives} random lives whose pods are resized: no restart without need, and in the end all have what was asked for`, async () => {
  const failures: string[] = [];
  let resized = 0;
  for (let seed = 1001; seed <= 1000 + lives; seed++) {
    const { problems, entries } = await runLife(seed, { resizes: true });
    resized += entries.filter(({ what }) => what === "ResizeCompleted").length;
    // The other rules are judged in the lives of life.test.ts.
    const own = problems.filter(({ rule, detail }) => {
      return rule === "no restart for a resize" || / has (?:shares|quota|memory|cpu\w+) /u.test(detail);
    });
    failures.push(...own.map(({ detail }) => `seed ${seed}: ${detail}`));
  }
  assert.deepEqual(failures, []);
  assert.ok(resized > lives, `${resized} resizes are too few to show anything`);
});
