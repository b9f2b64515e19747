import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { testContainer, testPod, testSandbox, testStatus } from "../../../test/support/observed.ts";
import type { Container } from "../../api/container.ts";
import type { PodSpec } from "../../api/pod.ts";
import { containerId, sandboxId } from "../../base/ids.ts";
import type { ContainerState, ContainerStatus } from "../status/pod-status.ts";
import { computePodActions, type PodActions } from "./pod-actions.ts";
import { firstStart, type PodActionsContext } from "./pod-actions-context.ts";

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox", ...more });
const always = (name: string): Container => container(name, { restartPolicy: "Always" });
const never = (name: string): Container => container(name, { restartPolicy: "Never" });
const onExit = (action: string, code: number): Partial<Container> => {
  return { restartPolicyRules: [{ action, exitCodes: { operator: "In", values: [code] } }] };
};

const instance = (name: string, state: ContainerState = "running"): ContainerStatus =>
  testContainer({ name, state, id: containerId(`id-${name}`) });
const ended = (name: string, exitCode: number): ContainerStatus => ({
  ...instance(name, "exited"),
  ...{ exitCode, reason: exitCode === 0 ? "Completed" : "Error" },
});

const plain: PodActionsContext = { ...firstStart, nowMs: 1000 };

/** Starts as `name@attempt`, waits as `~name`, the end of the pod as its code. */
function words({ killPod, createSandbox, containersToStart, waits }: PodActions): string[] {
  return [
    ...(createSandbox === undefined ? [killPod?.code ?? "no end"] : ["sandbox"]),
    ...containersToStart.map((start) => `${start.container.name}@${start.attempt}`),
    ...waits.map((wait) => `~${wait.container.name}`),
  ];
}

function decide(
  spec: Partial<PodSpec>,
  containers: readonly ContainerStatus[],
  context: Partial<PodActionsContext> = {},
): PodActions {
  const status = testStatus([testSandbox({ ready: false })], containers);
  return computePodActions(testPod(spec), status, { ...plain, ...context });
}

interface Row {
  readonly when: string;
  readonly spec: Partial<PodSpec>;
  readonly containers: readonly ContainerStatus[];
  readonly context?: Partial<PodActionsContext>;
  readonly then: readonly string[];
}

const job: Partial<PodSpec> = { restartPolicy: "Never", containers: [container("main")] };
const migrated = { ...job, initContainers: [container("migrate"), always("side")] };

const rows: readonly Row[] = [
  { when: "Never and the container runs", spec: job, containers: [instance("main")], then: ["PodCompleted"] },
  {
    when: "Never, and beside the container runs a sidecar",
    spec: migrated,
    containers: [ended("migrate", 0), instance("side"), instance("main")],
    then: ["PodCompleted"],
  },
  {
    when: "Never, and the pod is initialized",
    spec: migrated,
    containers: [ended("migrate", 0), instance("side")],
    then: ["PodCompleted"],
  },
  {
    when: "Never, one container's own policy lets it run again, and the other runs",
    spec: { restartPolicy: "Never", containers: [always("a"), container("b")] },
    containers: [instance("a"), instance("b")],
    then: ["sandbox", "a@1"],
  },
  {
    when: "Never, one container's own policy lets it run again, and the runtime has lost the other",
    spec: { restartPolicy: "Never", containers: [always("a"), container("b")] },
    containers: [ended("a", 0), instance("b", "unknown")],
    then: ["sandbox", "a@1"],
  },
  {
    when: "Never, one container's own policy lets it run again, and the other has not run yet",
    spec: { restartPolicy: "Never", containers: [always("a"), container("b")] },
    containers: [instance("a"), instance("b", "created")],
    then: ["sandbox", "a@1", "b@0"],
  },
  {
    when: "Never, and a rule restarts the container after its exit",
    spec: { restartPolicy: "Never", containers: [{ ...never("a"), ...onExit("Restart", 42) }, container("b")] },
    containers: [ended("a", 42), instance("b")],
    then: ["sandbox", "a@1"],
  },
  {
    when: "Never, and a rule restarts all containers after its exit",
    spec: { restartPolicy: "Never", containers: [{ ...never("a"), ...onExit("RestartAllContainers", 42) }] },
    containers: [ended("a", 42)],
    then: ["sandbox", "a@1"],
  },
  {
    when: "Never, and the rule is for another exit",
    spec: { restartPolicy: "Never", containers: [{ ...never("a"), ...onExit("Restart", 42) }] },
    containers: [ended("a", 1)],
    then: ["PodCompleted"],
  },
  {
    when: "Always, and the only container of its own policy Never runs",
    spec: { restartPolicy: "Always", containers: [never("a")] },
    containers: [instance("a")],
    then: ["PodCompleted"],
  },
  {
    when: "OnFailure, and the container runs",
    spec: { restartPolicy: "OnFailure", containers: [container("a")] },
    containers: [instance("a")],
    then: ["sandbox", "a@1"],
  },
  {
    when: "OnFailure, and the container was stopped for its probe and ended well",
    spec: { restartPolicy: "OnFailure", containers: [container("a")] },
    containers: [ended("a", 0)],
    context: { restartCause: () => ({ code: "LivenessProbeFailed", message: "its probe failed" }) },
    then: ["sandbox", "a@1"],
  },
  {
    when: "Always, and one container is in its back-off",
    spec: { containers: [container("a"), container("b")] },
    containers: [ended("a", 1), instance("b")],
    context: { backOffEndsAt: () => 9000 },
    then: ["sandbox", "b@1", "~a"],
  },
  {
    when: "Always, and the only container is in its back-off",
    spec: { containers: [container("a")] },
    containers: [ended("a", 1)],
    context: { backOffEndsAt: () => 9000 },
    then: ["sandbox", "~a"],
  },
];

describe("a pod whose sandbox is lost", () => {
  for (const { when, spec, containers, context, then } of rows) {
    test(`${when}: ${then.join(", ")}`, () => {
      assert.deepEqual(words(decide(spec, containers, context)), then);
    });
  }

  test("is over for a stated reason while containers run that may not run again", () => {
    const { killPod } = decide(job, [instance("main")]);
    assert.equal(killPod?.message, "none of its containers may run again");
    assert.equal(killPod.because?.code, "SandboxNotReady");
  });
});

describe("a pod in a new sandbox", () => {
  const spec: Partial<PodSpec> = {
    initContainers: [container("i")],
    containers: [container("a"), container("b"), container("c")],
  };
  const inNew = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
    ...instance(name),
    ...{ id: containerId(`new-${name}`), sandboxId: sandboxId("new"), restartCount: 1, ...more },
  });
  const old = [ended("i", 0), ended("a", 137), ended("b", 137), ended("c", 137)];
  const initialized = inNew("i", { state: "exited", exitCode: 0 });

  function starts(containers: readonly ContainerStatus[], context: Partial<PodActionsContext> = {}): string[] {
    const status = testStatus([testSandbox({ id: sandboxId("new"), attempt: 1 })], [...containers, ...old]);
    const { containersToStart } = computePodActions(testPod(spec), status, { ...plain, ...context });
    return containersToStart.map(
      (start) => `${start.restart ? "restart " : ""}${start.container.name}@${start.attempt}`,
    );
  }

  test("starts its containers as in its first one: one after the other, in the order of the spec", () => {
    assert.deepEqual(starts([initialized]), ["a@1", "b@1", "c@1"]);
  });

  test("starts one only after those before it, while their starts are in progress", () => {
    assert.deepEqual(starts([initialized], { busy: new Set(["a"]) }), []);
    const inHook = inNew("a");
    assert.deepEqual(starts([inHook, initialized], { busy: new Set(["a"]) }), []);
    assert.deepEqual(starts([inHook, initialized]), ["b@1", "c@1"]);
  });

  test("restarts one that has ended in it, and waits for no such restart", () => {
    const again = inNew("a", { state: "exited", exitCode: 1 });
    assert.deepEqual(starts([again, inNew("b"), initialized]), ["restart a@2", "c@1"]);
    assert.deepEqual(starts([again, initialized], { busy: new Set(["a"]) }), ["b@1", "c@1"]);
  });

  test("keeps the back-off of exits in an earlier sandbox", () => {
    const backOffEndsAt = ({ name }: Container): number | undefined => (name === "a" ? 9000 : undefined);
    assert.deepEqual(starts([initialized], { backOffEndsAt }), ["b@1", "c@1"]);
  });

  test("starts nothing that was lost with an earlier one and never restarts", () => {
    const lost = { ...instance("b", "unknown"), sandboxId: sandboxId("old") };
    const mixed = testPod({ restartPolicy: "Never", containers: [always("a"), container("b")] });
    const status = testStatus([testSandbox()], [instance("a"), lost]);
    const { containersToStart, containersToKill } = computePodActions(mixed, status, plain);
    assert.deepEqual([containersToStart, containersToKill], [[], []]);
  });
});
