import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import { affinityProblem } from "./volume-affinity.ts";

const key = "zone";
const volume = (nodeAffinity: PersistentVolume["spec"]["nodeAffinity"]): PersistentVolume => {
  return { metadata: { name: "pv" }, spec: { nodeAffinity } };
};
const ofZone = (operator: string, values?: string[]): PersistentVolume => {
  return volume({ required: { nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }] } });
};

test("a volume's node affinity is compared with the node's labels", () => {
  assert.equal(affinityProblem(ofZone("In", ["a"]), { zone: "a" }), undefined);
  assert.equal(affinityProblem(ofZone("In", ["a"]), { zone: "b" }), "no matching NodeSelectorTerms");
  assert.equal(affinityProblem(volume({ required: { nodeSelectorTerms: [] } }), {}), "no matching NodeSelectorTerms");
});

test("unknown labels are not taken for none: a volume with an affinity waits for them, and no other", () => {
  const unknown = "the labels of this node are not known yet: the API server has not sent its Node";
  assert.equal(affinityProblem(ofZone("In", ["a"]), undefined), unknown);
  assert.equal(affinityProblem(ofZone("DoesNotExist"), undefined), unknown);
  assert.equal(affinityProblem(ofZone("DoesNotExist"), {}), undefined);
  assert.equal(affinityProblem(volume(undefined), undefined), undefined);
});
