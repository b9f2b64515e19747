import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runLife } from "./lives.ts";

const lives = 300;

describe("a node in the simulator", () => {
  test(`${lives} random lives with lost events, failing calls and restarts of podwright break no rule and come to rest`, async () => {
    const failures: string[] = [];
    for (let seed = 1; seed <= lives; seed++) {
      const { problems } = await runLife(seed);
      if (problems.length > 0) failures.push(`seed ${seed}: ${problems.join("; ")}`);
    }
    assert.deepEqual(failures, []);
  });

  test("the same seed gives the same journal, entry for entry", async () => {
    let entries = 0;
    for (const seed of [3, 17, 29, 101]) {
      const [first, second] = [await runLife(seed), await runLife(seed)];
      assert.deepEqual(first.entries, second.entries);
      entries += first.entries.length;
    }
    assert.ok(entries > 100);
  });

  test("every action of a life names its cause", async () => {
    for (const seed of [1, 2, 5, 8]) {
      const { entries } = await runLife(seed);
      const actions = entries.filter((entry) => entry.kind === "action");
      assert.ok(actions.length > 0);
      assert.deepEqual(
        actions.filter((entry) => entry.cause === undefined || entry.cause.message === ""),
        [],
      );
    }
  });
});
