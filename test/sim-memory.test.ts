import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as setImmediatePromise } from "node:timers/promises";
import { queryObjects } from "node:v8";
import { Kubelet } from "../src/kubelet/kubelet.ts";
import { runLife } from "../src/sim/life/life.ts";

test("ended lives leave no node in memory, not even those killed in them", async () => {
  let kills = 0;
  for (let seed = 29; seed <= 38; seed++) {
    const { coverage } = await runLife(seed);
    kills += coverage.faults.get("podwright killed") ?? 0;
  }
  assert.ok(kills > 0, "there is nothing to see otherwise");
  await setImmediatePromise();
  assert.equal(queryObjects(Kubelet, { format: "count" }), 0);
});
