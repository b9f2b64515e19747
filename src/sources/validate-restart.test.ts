import assert from "node:assert/strict";
import { test } from "node:test";
import { problems } from "../../test/support/manifest-problems.ts";

const withRules = (rules: string, policy = "restartPolicy: Never,"): string[] =>
  problems(`{containers: [{name: c, image: b, ${policy} restartPolicyRules: ${rules}}]}`);

test("restart rules have a known action, an operator and exit codes", () => {
  assert.deepEqual(withRules("[{action: RestartAllContainers, exitCodes: {operator: NotIn, values: [0]}}]"), []);
  assert.deepEqual(withRules("[{action: Stop}, {action: Restart, exitCodes: {operator: Above, values: [1]}}]"), [
    'spec.containers[0].restartPolicyRules[0].action: Unsupported value: "Stop": supported values: "Restart", "RestartAllContainers"',
    "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
    'spec.containers[0].restartPolicyRules[1].exitCodes.operator: Unsupported value: "Above": supported values: "In", "NotIn"',
  ]);
});

test("restart rules require the container's own policy, and there are at most 20", () => {
  const rule = "{action: Restart, exitCodes: {operator: In, values: [1]}}";
  assert.deepEqual(withRules(`[${rule}]`, ""), [
    "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
  ]);
  assert.deepEqual(withRules(`[${Array.from({ length: 21 }, () => rule).join(", ")}]`), [
    "spec.containers[0].restartPolicyRules: Too long: may not be more than 20 rules",
  ]);
});
