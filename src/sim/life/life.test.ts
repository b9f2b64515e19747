import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findUnsupported } from "../../sources/unsupported.ts";
import { validatePod } from "../../sources/validate.ts";
import { SimRandom } from "../random.ts";
import { runLife } from "./life.ts";
import { drawPlan } from "./plan.ts";
import { drawPod } from "./pods.ts";
import { stepKinds } from "./steps.ts";
import { hasDrivers } from "./subjects.ts";

describe("a node in the simulator", () => {
  test("some random lives break no rule", async () => {
    for (let seed = 1; seed <= 8; seed++) assert.deepEqual((await runLife(seed)).problems, [], `seed ${seed}`);
  });

  test("omitting a step does not change the others", async () => {
    const [whole, part] = [await runLife(7), await runLife(7, { steps: [0, 2] })];
    assert.deepEqual(
      part.plan,
      whole.plan.filter(({ index }) => index === 0 || index === 2),
    );
    assert.ok(part.entries.length > 0 && part.entries.length < whole.entries.length);
  });

  test("plans have every kind of step, and valid pods", () => {
    const kinds = new Set<string>();
    for (let seed = 1; seed <= 300; seed++) {
      const plan = drawPlan(seed);
      for (const { kind } of plan) kinds.add(kind);
      const pod = drawPod("web", "uid-1", new SimRandom(seed), { without: new Set(), always: new Set(), seed });
      // Claims are for pods of an API server.
      const source = hasDrivers(seed) ? "api" : "manifest";
      const manifest = { ...pod, apiVersion: "v1", kind: "Pod" } as const;
      assert.deepEqual([...validatePod(manifest), ...findUnsupported(manifest, source)], [], `seed ${seed}`);
    }
    assert.deepEqual([...kinds].toSorted(), stepKinds.toSorted());
  });
});
