import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runLife } from "./life.ts";

const lives = 100;

describe("a node in the simulator", () => {
  test(`${lives} random lives`, async () => {
    const failures: string[] = [];
    for (let seed = 1; seed <= lives; seed++) {
      const { problems } = await runLife(seed);
      if (problems.length > 0) failures.push(`seed ${seed}: ${problems.map(({ rule }) => rule).join("; ")}`);
    }
    assert.deepEqual(failures, []);
  });
});
