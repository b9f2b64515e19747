import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testPod, testSandbox, testStatus } from "../../test/support/observed.ts";
import type { Container } from "../api/container.ts";
import type { PodSpec } from "../api/pod.ts";
import { computePodActions } from "./pod-actions.ts";
import type { ContainerStatus } from "./pod-status.ts";
import type { Unhealthy } from "./container-decision.ts";
import type { PodActionsContext } from "./pod-actions-context.ts";

const liveness: Unhealthy = { cause: { code: "LivenessProbeFailed", message: "liveness failed 3/3" } };
const startup: Unhealthy = { cause: { code: "StartupProbeFailed", message: "startup failed 30/30" }, graceSeconds: 4 };
const restart42 = [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }];

/** Whether a container that is stopped for its probe is to run again, `undefined` when it is not stopped. */
function afterUnhealthy(unhealthy: Unhealthy, spec: Partial<PodSpec>, container: Partial<Container> = {}) {
  const pod = testPod({ containers: [{ name: "c", image: "busybox", ...container }], ...spec });
  const context = { ...plain, unhealthy: () => unhealthy };
  const { containersToKill } = computePodActions(pod, testStatus([testSandbox()], [testContainer()]), context);
  return containersToKill[0];
}

const plain: PodActionsContext = {
  nowMs: 1000,
  busy: new Set(),
  backOffEndsAt: () => undefined,
  retryAt: () => undefined,
  sandboxRetryAt: undefined,
  evidence: () => undefined,
  restartCause: () => undefined,
  startsOver: () => false,
  unhealthy: () => undefined,
  started: () => true,
};

describe("a container that fails its probe", () => {
  const rows: readonly [string, Unhealthy, Partial<PodSpec>, Partial<Container>, boolean][] = [
    ["liveness under Always", liveness, { restartPolicy: "Always" }, {}, true],
    ["liveness under OnFailure", liveness, { restartPolicy: "OnFailure" }, {}, true],
    ["liveness under Never", liveness, { restartPolicy: "Never" }, {}, false],
    ["startup under Always", startup, {}, {}, true],
    [
      "its own Always in a pod that never restarts",
      liveness,
      { restartPolicy: "Never" },
      { restartPolicy: "Always" },
      true,
    ],
    ["its own Never in a pod that always restarts", liveness, {}, { restartPolicy: "Never" }, false],
    [
      "its own Never with a rule for exit codes, which has no say",
      liveness,
      {},
      { restartPolicy: "Never", restartPolicyRules: restart42 },
      false,
    ],
  ];
  for (const [name, unhealthy, spec, container, again] of rows) {
    test(`is stopped and ${again ? "runs again" : "stays ended"}: ${name}`, () => {
      const kill = afterUnhealthy(unhealthy, spec, container);
      assert.deepEqual([kill?.cause, kill?.restarts], [unhealthy.cause, again]);
      assert.equal(kill?.graceSeconds, unhealthy.graceSeconds);
    });
  }
});

test("a container whose name or image changed is stopped and started; one whose command changed is left alone", () => {
  const act = (change: Partial<Container>) => {
    const pod = testPod({ containers: [{ name: "c", image: "busybox", ...change }] });
    const { containersToKill, containersToStart } = computePodActions(
      pod,
      testStatus([testSandbox()], [testContainer()]),
      plain,
    );
    return [containersToKill.length, containersToStart.map(({ attempt }) => attempt)];
  };
  assert.deepEqual(act({ image: "busybox:2" }), [1, [1]]);
  assert.deepEqual(act({ command: ["other"], env: [{ name: "A", value: "1" }] }), [0, []]);
});

const exited = (name: string, exitCode: number): ContainerStatus =>
  testContainer({ name, state: "exited", exitCode, finishedAt: 3n });

/** What is started next in a pod whose init container has ended with code 1; the end of the pod as its code. */
function afterInitFailure(podPolicy: PodSpec["restartPolicy"], own: Partial<Container>): string {
  const pod = testPod({
    ...(podPolicy === undefined ? {} : { restartPolicy: podPolicy }),
    initContainers: [{ name: "i", image: "busybox", ...own }],
  });
  const { killPod, containersToStart } = computePodActions(pod, testStatus([testSandbox()], [exited("i", 1)]), plain);
  return killPod?.code ?? containersToStart.map(({ container, attempt }) => `${container.name}@${attempt}`).join(",");
}

test("a failed init container's own policy and rules come before its pod's policy", () => {
  assert.equal(afterInitFailure("Never", { restartPolicy: "OnFailure" }), "i@1");
  assert.equal(afterInitFailure("Always", { restartPolicy: "Never" }), "InitContainerFailed");
  const again = { restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [1] } }] };
  assert.equal(afterInitFailure("Never", { restartPolicy: "Never", ...again }), "i@1");
});
