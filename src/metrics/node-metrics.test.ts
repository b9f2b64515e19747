import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { NodeMetrics } from "./node-metrics.ts";

test("a runtime that a later release will not support is reported with that release", () => {
  const samples = (runtimeUnsupportedFrom: string | undefined) => {
    const facts = {
      nodeName: "n",
      version: "v1.36.2",
      platform: "linux/amd64",
      cgroupVersion: 2,
      features: [],
    } as const;
    const families = new NodeMetrics(new ManualClock()).families({
      ...facts,
      runtimeUnsupportedFrom,
      credentialConfigHash: undefined,
    });
    return families.find(({ name }) => name === "kubelet_cri_losing_support")?.samples;
  };
  assert.deepEqual(samples("1.37.0"), [{ labels: ["1.37.0"], value: 1 }]);
  assert.deepEqual(samples(undefined), []);
});
