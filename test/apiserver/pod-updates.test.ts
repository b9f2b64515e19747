import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Fields } from "./objects.ts";
import { specProblems } from "./pod-updates.ts";

const forever = { key: "a", operator: "Exists", effect: "NoExecute" };
const brief = { ...forever, tolerationSeconds: 5 };
const image = (name: string): Fields => ({ containers: [{ name: "app", image: name }] });

/** `spec` before and after, and the field of the problem or `""`. */
const rows: readonly (readonly [name: string, old: Fields, spec: Fields, field: string])[] = [
  ["an image may change", image("a:1"), image("a:2"), ""],
  ["a host name may not change", { hostname: "a" }, { hostname: "b" }, "spec"],
  ["a grace that was negative may become 1", graceOf(-1), graceOf(1), ""],
  ["a grace that was negative may become nothing else", graceOf(-1), graceOf(2), "spec"],
  ["a grace may not become shorter", graceOf(30), graceOf(5), "spec"],
  ["a grace may not become 1", graceOf(30), graceOf(1), "spec"],
  ["a deadline may be set", {}, deadlineOf(100), ""],
  ["a deadline may come sooner", deadlineOf(100), deadlineOf(50), ""],
  ["a deadline may not come later", deadlineOf(100), deadlineOf(200), "spec.activeDeadlineSeconds"],
  ["a deadline may not go", deadlineOf(100), {}, "spec.activeDeadlineSeconds"],
  ["a deadline may not be negative", {}, deadlineOf(-1), "spec.activeDeadlineSeconds"],
  ["a toleration may be added", {}, { tolerations: [forever] }, ""],
  ["a toleration's seconds may change", { tolerations: [forever] }, { tolerations: [brief] }, ""],
  ["a toleration may not go", { tolerations: [forever] }, {}, "spec.tolerations"],
  [
    "a toleration may not change",
    { tolerations: [forever] },
    { tolerations: [{ ...forever, key: "b" }] },
    "spec.tolerations",
  ],
  ["a gate may open", { schedulingGates: [{ name: "g" }] }, {}, ""],
  ["a gate may not be added", {}, { schedulingGates: [{ name: "g" }] }, "spec.schedulingGates[0].name"],
];

function graceOf(terminationGracePeriodSeconds: number): Fields {
  return { terminationGracePeriodSeconds };
}

function deadlineOf(activeDeadlineSeconds: number): Fields {
  return { activeDeadlineSeconds };
}

describe("an update of a pod", () => {
  for (const [name, old, spec, field] of rows) {
    it(name, () => {
      const fields = specProblems(spec, old).map(([each]) => each);
      assert.deepEqual(fields, field === "" ? [] : [field]);
    });
  }
});
