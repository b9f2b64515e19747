import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testPod, testSandbox, testStatus } from "../../../test/support/observed.ts";
import type { Container } from "../../api/container.ts";
import type { PodSpec } from "../../api/pod.ts";
import { containerId, sandboxId } from "../../base/ids.ts";
import { computePodActions, type PodActions } from "./pod-actions.ts";
import type { ContainerStatus, SandboxStatus } from "../status/pod-status.ts";
import { firstStart, type PodActionsContext } from "./pod-actions-context.ts";

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox", ...more });
const sidecar = (name: string): Container => container(name, { restartPolicy: "Always" });

const running = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  testContainer({ name, ...more });
const ended = (name: string, exitCode: number, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  testContainer({ name, state: "exited", exitCode, reason: exitCode === 0 ? "Completed" : "Error", ...more });

interface Row {
  readonly when: string;
  readonly spec: Partial<PodSpec>;
  readonly sandboxes?: readonly SandboxStatus[];
  readonly containers?: readonly ContainerStatus[];
  readonly context?: Partial<PodActionsContext>;
  /** Starts as `name@attempt`, stops as `-name`, waits as `~name`, the end of the pod as its code. */
  readonly then: readonly string[];
}

/** Has all containers start over when it ends with 3. */
const startsAllOver = container("c", {
  restartPolicy: "Never",
  restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [3] } }],
});

const two = { initContainers: [container("i1"), container("i2")] };
const mixed = { initContainers: [container("i1"), sidecar("side"), container("i2")] };
const notStarted = { started: () => false };

const rows: readonly Row[] = [
  { when: "a pod begins with its first init container", spec: two, sandboxes: [], then: ["sandbox", "i1@0"] },
  { when: "the sandbox is there and nothing has run", spec: two, then: ["i1@0"] },
  { when: "the first init container runs", spec: two, containers: [running("i1")], then: [] },
  { when: "the first init container has ended well", spec: two, containers: [ended("i1", 0)], then: ["i2@0"] },
  { when: "the first init container failed", spec: two, containers: [ended("i1", 1)], then: ["i1@1"] },
  {
    when: "an init container failed under OnFailure",
    spec: { ...two, restartPolicy: "OnFailure" },
    containers: [ended("i1", 1)],
    then: ["i1@1"],
  },
  {
    when: "an init container failed under Never",
    spec: { ...two, restartPolicy: "Never" },
    containers: [ended("i1", 1)],
    then: ["InitContainerFailed"],
  },
  {
    when: "a failed init container is in back-off",
    spec: two,
    containers: [ended("i1", 1)],
    context: { backOffEndsAt: () => 5000 },
    then: ["~i1"],
  },
  {
    when: "all init containers have ended well",
    spec: two,
    containers: [ended("i1", 0), ended("i2", 0)],
    then: ["c@0"],
  },
  {
    when: "the runtime has forgotten the first init container",
    spec: two,
    containers: [ended("i2", 0)],
    then: ["c@0"],
  },
  {
    when: "a life before stopped a sidecar of a pod that is over, and ended before it had stopped the others",
    spec: { initContainers: [sidecar("outer"), sidecar("inner")], restartPolicy: "OnFailure" },
    containers: [running("outer"), ended("inner", 0), ended("c", 0)],
    then: ["PodCompleted"],
  },
  {
    when: "init containers are gone while a regular container runs",
    spec: two,
    containers: [running("c")],
    then: [],
  },
  {
    when: "init containers ended well in an earlier sandbox",
    spec: two,
    containers: [ended("i1", 0, { sandboxId: sandboxId("old") }), ended("i2", 0, { sandboxId: sandboxId("old") })],
    then: ["i1@1"],
  },
  {
    when: "an init container was created and not started",
    spec: two,
    containers: [testContainer({ name: "i1", state: "created" })],
    then: ["i1@0"],
  },
  {
    when: "the runtime lost track of an init container",
    spec: two,
    containers: [testContainer({ name: "i1", state: "unknown" })],
    then: ["-i1", "i1@1"],
  },
  { when: "a sidecar's turn has come", spec: mixed, containers: [ended("i1", 0)], then: ["side@0"] },
  {
    when: "a sidecar runs and has not started yet",
    spec: mixed,
    containers: [ended("i1", 0), running("side")],
    context: notStarted,
    then: [],
  },
  {
    when: "a sidecar has started",
    spec: mixed,
    containers: [ended("i1", 0), running("side")],
    then: ["i2@0"],
  },
  {
    when: "a sidecar ended while a later init container runs",
    spec: mixed,
    containers: [ended("i1", 0), ended("side", 0), running("i2")],
    then: ["side@1"],
  },
  {
    when: "a sidecar ended well while the regular container runs",
    spec: mixed,
    containers: [ended("i1", 0), ended("side", 0), ended("i2", 0), running("c")],
    then: ["side@1"],
  },
  {
    when: "a sidecar ended under Never: it is restarted all the same",
    spec: { ...mixed, restartPolicy: "Never" },
    containers: [ended("i1", 0), ended("side", 1), ended("i2", 0), running("c")],
    then: ["side@1"],
  },
  {
    when: "the runtime has forgotten a sidecar of an initialized pod",
    spec: mixed,
    containers: [ended("i1", 0), ended("i2", 0), running("c")],
    then: ["side@0"],
  },
  {
    when: "a sidecar is restarting and the regular container has not been started",
    spec: { initContainers: [sidecar("side")] },
    containers: [ended("side", 1)],
    context: { backOffEndsAt: () => 5000 },
    then: ["~side"],
  },
  {
    when: "the regular containers are done while a sidecar runs",
    spec: { initContainers: [sidecar("side")], restartPolicy: "OnFailure" },
    containers: [running("side"), ended("c", 0)],
    then: ["PodCompleted"],
  },
  {
    when: "a sidecar is unhealthy",
    spec: { initContainers: [sidecar("side")] },
    containers: [running("side"), running("c")],
    context: {
      unhealthy: ({ name }) => (name === "side" ? { cause: { code: "LivenessProbeFailed", message: "" } } : undefined),
    },
    then: ["-side"],
  },
  {
    when: "an ephemeral container is asked for while the pod initializes",
    spec: { ...two, ephemeralContainers: [container("debug")] },
    containers: [running("i1")],
    then: ["debug@0"],
  },
  {
    when: "an ephemeral container was created and never started",
    spec: { ephemeralContainers: [container("debug")] },
    containers: [running("c"), { ...running("debug"), state: "created" }],
    then: ["debug@0"],
  },
  {
    when: "an ephemeral container has ended",
    spec: { ephemeralContainers: [container("debug")] },
    containers: [running("c"), ended("debug", 1)],
    then: [],
  },
  {
    when: "a container's own policy restarts it in a pod that never does",
    spec: { restartPolicy: "Never", containers: [container("c", { restartPolicy: "Always" })] },
    containers: [ended("c", 0)],
    then: ["c@1"],
  },
  {
    when: "a rule restarts after one exit code",
    spec: {
      containers: [
        container("c", {
          restartPolicy: "Never",
          restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
        }),
      ],
    },
    containers: [ended("c", 42)],
    then: ["c@1"],
  },
  {
    when: "the same rule and another exit code",
    spec: {
      containers: [
        container("c", {
          restartPolicy: "Never",
          restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
        }),
      ],
    },
    containers: [ended("c", 1)],
    then: ["PodCompleted"],
  },
  {
    when: "a rule restarts all containers",
    spec: {
      ...two,
      containers: [
        container("c", {
          restartPolicy: "Never",
          restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "NotIn", values: [0] } }],
        }),
        container("d"),
      ],
    },
    containers: [ended("i1", 0), ended("i2", 0), ended("c", 3), running("d")],
    then: ["all after c"],
  },
  {
    when: "a rule restarts all containers, and the back-off of the one that ended is not over",
    spec: {
      containers: [startsAllOver, container("d")],
    },
    containers: [ended("c", 3), running("d")],
    context: { nowMs: 1000, backOffEndsAt: () => 9000 },
    then: ["~c"],
  },
  {
    when: "a rule restarted all containers after an exit in an earlier sandbox: in the new one the pod starts over anyway",
    spec: {
      ...two,
      containers: [startsAllOver],
    },
    containers: [ended("i1", 0), ended("c", 3, { sandboxId: sandboxId("old") })],
    context: { nowMs: 1000, backOffEndsAt: () => 9000 },
    then: ["i2@0"],
  },
  {
    when: "the pod is to start over when a back-off is over, and another of its containers is unhealthy",
    spec: {
      containers: [startsAllOver, container("d"), container("e")],
    },
    containers: [ended("c", 3), running("d")],
    context: {
      nowMs: 1000,
      backOffEndsAt: () => 9000,
      unhealthy: ({ name }) => {
        return name === "d" ? { cause: { code: "LivenessProbeFailed", message: "its probe failed" } } : undefined;
      },
    },
    then: ["-d", "e@0", "~c"],
  },
  {
    when: "the pod has begun to start over, which failed and is tried again later: what is gone stays away till then",
    spec: {
      containers: [startsAllOver, container("d"), container("e")],
    },
    containers: [ended("c", 3), ended("d", 1)],
    context: { nowMs: 1000, sandboxRetryAt: 9000, startsOver: () => true },
    then: ["~c"],
  },
  {
    when: "the pod has begun to start over in an earlier life: that goes on at once, whatever its back-off is by now",
    spec: {
      containers: [startsAllOver, container("d")],
    },
    containers: [ended("c", 3)],
    context: { nowMs: 1000, backOffEndsAt: () => 9000, startsOver: () => true },
    then: ["all after c"],
  },
  {
    when: "a container that podwright stopped for its probe ended well under OnFailure",
    spec: { restartPolicy: "OnFailure" },
    containers: [ended("c", 0)],
    context: { restartCause: () => ({ code: "LivenessProbeFailed", message: "its probe failed" }) },
    then: ["c@1"],
  },
];

function words(actions: PodActions): string[] {
  return [
    ...(actions.createSandbox === undefined ? [] : ["sandbox"]),
    ...(actions.killPod === undefined || actions.createSandbox !== undefined ? [] : [actions.killPod.code]),
    ...(actions.restartAll === undefined ? [] : [`all after ${actions.restartAll.source.name}`]),
    ...actions.containersToKill.map((kill) => `-${kill.container.name}`),
    ...actions.containersToStart.map((start) => `${start.container.name}@${start.attempt}`),
    ...actions.waits.map((wait) => `~${wait.container.name}`),
  ];
}

const plain: PodActionsContext = { ...firstStart, nowMs: 1000 };

describe("init containers, sidecars, ephemeral containers and rules", () => {
  for (const { when, spec, sandboxes = [testSandbox()], containers = [], context, then } of rows) {
    test(`${when}: ${then.join(", ") || "nothing"}`, () => {
      const actions = computePodActions(testPod(spec), testStatus(sandboxes, containers), { ...plain, ...context });
      assert.deepEqual(words(actions), then);
    });
  }

  test("an init container with an operation in progress delays the next one", () => {
    const status = testStatus([testSandbox()], [running("i1")]);
    const actions = computePodActions(testPod(two), status, { ...plain, busy: new Set(["i1"]) });
    assert.deepEqual(words(actions), []);
  });

  test("an ephemeral container has the container whose processes it joins", () => {
    const debug = { ...container("debug"), targetContainerName: "c" };
    const pod = testPod({ ephemeralContainers: [debug] });
    const startOfDebug = (containers: readonly ContainerStatus[], context = plain): unknown =>
      computePodActions(pod, testStatus([testSandbox()], containers), context).containersToStart.find(
        (start) => start.container.name === "debug",
      )?.target;
    assert.deepEqual(startOfDebug([running("c")]), { name: "c", id: containerId("c-id") });
    assert.deepEqual(startOfDebug([]), { name: "c", id: undefined }, "said when it is started: it does not run");
    assert.equal(startOfDebug([], { ...plain, busy: new Set(["c"]) }), undefined, "it waits for a start under way");
  });
});
