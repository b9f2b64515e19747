import assert from "node:assert/strict";
import { test } from "node:test";
import { shrink } from "./shrink.ts";

const all = Array.from({ length: 20 }, (_, index) => index);

test("steps and features that a failure does not need are removed", async () => {
  const fails = async ({ steps, without }: { steps: readonly number[]; without: readonly string[] }) =>
    steps.includes(3) && steps.includes(17) && !without.includes("probes");
  const { steps, without, tries } = await shrink(all, ["hooks", "probes", "volumes"], fails, () => true);
  assert.deepEqual(steps, [3, 17]);
  assert.deepEqual(without, ["hooks", "volumes"]);
  assert.ok(tries < 100);
});

test("shrinking ends after a number of attempts, with a failing plan", async () => {
  const { steps, tries } = await shrink(
    all,
    ["hooks"],
    async ({ steps: left }) => left.includes(19),
    (played) => played < 3,
  );
  assert.ok(tries <= 3 && steps.includes(19));
});
