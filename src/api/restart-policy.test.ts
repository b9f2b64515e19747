import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Container } from "./container.ts";
import type { Pod } from "./pod.ts";
import { afterExit, neverRestarts, restartsAfter } from "./restart-policy.ts";

type Policy = "Always" | "OnFailure" | "Never";
const rule = (action: string, operator: string, ...values: number[]) => ({ action, exitCodes: { operator, values } });

const cases: [string, Pod["spec"]["restartPolicy"], Partial<Container>, number, boolean][] = [
  ["no policy at all restarts", undefined, {}, 0, true],
  ...(
    [
      ["Always", 0, true],
      ["Always", 1, true],
      ["OnFailure", 0, false],
      ["OnFailure", 1, true],
      ["Never", 0, false],
      ["Never", 1, false],
    ] as [Policy, number, boolean][]
  ).flatMap(([policy, exitCode, restarts]): [string, Policy, Partial<Container>, number, boolean][] => [
    [`the pod's ${policy} decides about exit code ${exitCode}`, policy, {}, exitCode, restarts],
    [
      `the container's ${policy} decides about exit code ${exitCode}`,
      "Never",
      { restartPolicy: policy },
      exitCode,
      restarts,
    ],
  ]),
  [
    "a rule names the exit code",
    "Never",
    { restartPolicy: "Never", restartPolicyRules: [rule("Restart", "In", 42)] },
    42,
    true,
  ],
  [
    "a rule names another exit code",
    "Never",
    { restartPolicy: "Never", restartPolicyRules: [rule("Restart", "In", 42)] },
    1,
    false,
  ],
  [
    "a rule excludes the exit code",
    "Never",
    { restartPolicy: "Never", restartPolicyRules: [rule("Restart", "NotIn", 42)] },
    42,
    false,
  ],
  [
    "a rule excludes other exit codes",
    "Never",
    { restartPolicy: "Never", restartPolicyRules: [rule("Restart", "NotIn", 42)] },
    1,
    true,
  ],
  [
    "a rule without a policy beside it counts nothing",
    "Never",
    { restartPolicyRules: [rule("Restart", "In", 42)] },
    42,
    false,
  ],
];

for (const [name, restartPolicy, container, exitCode, restarts] of cases) {
  test(`${name}: ${restarts ? "again" : "not again"}`, () => {
    const pod = podWith(restartPolicy === undefined ? {} : { restartPolicy });
    assert.equal(restartsAfter(pod, { name: "c", ...container }, exitCode), restarts);
  });
}

test("of two rules that match the first decides", () => {
  const first = (...actions: readonly string[]): string => {
    const restartPolicyRules = actions.map((action) => rule(action, "In", 42));
    return afterExit(podWith({}), { name: "c", restartPolicy: "Never", restartPolicyRules }, 42);
  };
  assert.equal(first("Restart", "RestartAllContainers"), "restart");
  assert.equal(first("RestartAllContainers", "Restart"), "restartAllContainers");
});

test("a pod runs everything once unless a policy, or a rule of a container, lets something run again", () => {
  const spec = (restartPolicy: Policy, ...own: readonly Partial<Container>[]): Pod =>
    podWith({ restartPolicy, containers: own.map((container, index) => ({ name: `c${index}`, ...container })) });
  const restartPolicyRules = [rule("Restart", "In", 42)];
  assert.ok(neverRestarts(spec("Never", {}, { restartPolicy: "Never" })));
  assert.ok(!neverRestarts(spec("Never", {}, { restartPolicy: "Always" })));
  assert.ok(!neverRestarts(spec("Never", {}, { restartPolicy: "Never", restartPolicyRules })));
  assert.ok(!neverRestarts(spec("OnFailure", {}, { restartPolicy: "Never" })));
});
