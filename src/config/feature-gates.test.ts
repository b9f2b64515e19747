import assert from "node:assert/strict";
import { test } from "node:test";
import { featureGates, knownFeatureGates } from "./feature-gates.ts";

test("every gate of the 1.36 kubelet is known", () => {
  const known = knownFeatureGates();
  assert.ok(known.size > 230, String(known.size));
  assert.deepEqual(known.get("EventedPLEG"), { stage: "alpha", enabled: false, locked: false });
  assert.deepEqual(known.get("NodeSwap"), { stage: "ga", enabled: true, locked: true });
  assert.deepEqual(known.get("GitRepoVolumeDriver"), { stage: "deprecated", enabled: false, locked: true });
});

test("an unknown gate and a change of a locked one are errors in upstream's words", () => {
  assert.deepEqual(featureGates({ PodPriorities: true, NodeSwap: false, ImageVolume: true }).errors, [
    "unrecognized feature gate: PodPriorities",
    "cannot set feature gate NodeSwap to false, feature is locked to true",
  ]);
});

test("a gate that changes nothing here is told, one at its default is not", () => {
  const gates = featureGates({ EventedPLEG: true, ContainerCheckpoint: true, CustomCPUCFSQuotaPeriod: false });
  assert.deepEqual(gates.withoutEffect, ["EventedPLEG=true"]);
  assert.equal(gates.enabled("CustomCPUCFSQuotaPeriod"), false);
  assert.deepEqual(gates.errors, []);
});

test("AllAlpha and AllBeta set what is not named itself and not locked", () => {
  const gates = featureGates({ AllAlpha: true, AllBeta: false, EventedPLEG: false, KubeletCrashLoopBackOffMax: true });
  assert.equal(gates.enabled("MemoryQoS"), true);
  assert.equal(gates.enabled("EventedPLEG"), false);
  assert.equal(gates.enabled("ComponentStatusz"), false);
  assert.equal(gates.enabled("KubeletCrashLoopBackOffMax"), true);
  assert.equal(gates.enabled("NodeSwap"), true);
  assert.equal(gates.enabled("NoSuchGate"), false);
});
