import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SimPool } from "../../../scripts/sim-pool.ts";
import type { Report } from "../../../scripts/sim-worker.ts";
import { findUnsupported } from "../../sources/unsupported.ts";
import { validatePod } from "../../sources/validate.ts";
import { SimRandom } from "../random.ts";
import { runLife } from "./life.ts";
import { drawPlan } from "./plan.ts";
import { drawPod } from "./pods.ts";
import { stepKinds } from "./steps.ts";

const lives = 1000;
/** So many of them are played twice. */
const twice = 200;

async function playAll(pool: SimPool, count: number): Promise<Report[]> {
  return await Promise.all(Array.from({ length: count }, (_, index) => pool.play(index + 1)));
}

describe("a node in the simulator", () => {
  test(`${lives} random lives break no rule, ${twice} of them played twice give the same journal, byte for byte`, async () => {
    await using pool = new SimPool();
    const reports = await playAll(pool, lives);
    const failures = reports.flatMap(({ seed, problems }) =>
      problems.slice(0, 1).map(({ rule, detail }) => `${rule}: ${detail}; npm run sim -- --seed ${seed}`),
    );
    assert.deepEqual(failures, []);
    const again = await playAll(pool, twice);
    const other = again.filter(({ seed, digest }) => reports[seed - 1]?.digest !== digest).map(({ seed }) => seed);
    assert.deepEqual(other, []);
    const taken = new Set(reports.flatMap(({ coverage }) => [...coverage.steps.keys()]));
    assert.deepEqual(
      stepKinds.filter((kind) => !taken.has(kind)),
      [],
      "every kind of step is taken",
    );
  });

  test("a step that is left out leaves the others as they are", async () => {
    const [whole, part] = [await runLife(7), await runLife(7, { steps: [0, 2] })];
    assert.deepEqual(
      part.plan,
      whole.plan.filter(({ index }) => index === 0 || index === 2),
    );
    assert.ok(part.entries.length > 0 && part.entries.length < whole.entries.length);
  });

  test("plans have every kind of step, and pods are such as a source would take", () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= 300; seed++) {
      const plan = drawPlan(seed);
      for (const { kind } of plan) kinds.add(kind);
      const pod = drawPod("web", "uid-1", new SimRandom(seed), new Set());
      const manifest = { ...pod, apiVersion: "v1", kind: "Pod" } as const;
      assert.deepEqual([...validatePod(manifest), ...findUnsupported(manifest)], [], `seed ${seed}`);
    }
    assert.deepEqual([...kinds].toSorted(), stepKinds.toSorted());
  });
});
