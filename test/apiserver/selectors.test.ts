import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ApiObject } from "./objects.ts";
import { fieldSelector, labelSelector, matchesLabelSelector } from "./selectors.ts";

const object: ApiObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    name: "web",
    namespace: "default",
    uid: "u",
    resourceVersion: "1",
    creationTimestamp: "2026-11-20T00:00:00Z",
    labels: { app: "web", tier: "front", "example.com/size": "12" },
  },
  spec: { nodeName: "node1" },
};

describe("a label selector", () => {
  const matching = [
    "",
    "app=web",
    "app==web,tier=front",
    "app!=db",
    "missing!=x",
    "app",
    "!missing",
    "tier in (front, back)",
    "tier notin (back),app=web",
    "missing notin (a)",
    "example.com/size>10",
    "example.com/size<13",
  ];
  const others = [
    "app=db",
    "app!=web",
    "missing",
    "!app",
    "tier in (back)",
    "tier notin (front,back)",
    "app=web,tier=back",
  ];
  for (const text of matching) it(`${text || "that is empty"} matches`, () => assert.ok(labelSelector(text)(object)));
  for (const text of others) it(`${text} does not`, () => assert.ok(!labelSelector(text)(object)));
  it("that is malformed is rejected", () => {
    for (const text of ["a b", "in (x)", "a in x", "=a"]) assert.throws(() => labelSelector(text), { code: 400 });
  });
});

describe("a field selector", () => {
  const choose = (text: string): boolean =>
    fieldSelector(text, ["spec.nodeName", "status.phase", "spec.unschedulable"])(object);
  it("compares known fields as text, missing ones as empty", () => {
    assert.ok(choose("spec.nodeName=node1,metadata.name==web"));
    assert.ok(choose("spec.nodeName!=node2"));
    assert.ok(choose("status.phase="));
    assert.ok(choose("spec.unschedulable=false"));
    assert.ok(!choose("metadata.namespace=other"));
  });
  it("of an unknown field is rejected", () => {
    assert.throws(() => choose("spec.color=red"), /field label not supported: spec\.color/);
    assert.throws(() => choose("nonsense"), { code: 400 });
  });
});

describe("a selector object", () => {
  it("matches labels and expressions", () => {
    const expression = (key: string, operator: string, ...values: string[]): boolean =>
      matchesLabelSelector({ matchExpressions: [{ key, operator, values }] }, object);
    assert.ok(matchesLabelSelector({ matchLabels: { app: "web" } }, object));
    assert.ok(expression("tier", "In", "front") && expression("tier", "NotIn", "back") && expression("tier", "Exists"));
    assert.ok(!expression("tier", "DoesNotExist") && expression("missing", "DoesNotExist"));
  });
});
