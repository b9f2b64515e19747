import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { test } from "node:test";
import { huntAll, mutants } from "../../scripts/mutants/hunt.ts";

test("the simulator finds every mutant within 1000 lives", async () => {
  const hunts = await huntAll(mutants, { starts: [1], most: 1000, threads: availableParallelism() });
  const survivors = hunts.filter(({ rules }) => rules.length === 0).map(({ mutant }) => mutant.name);
  assert.deepEqual(survivors, []);
});
