import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../../test/support/fast-check.ts";
import { testContainer, testPod, testSandbox, testStatus } from "../../../test/support/observed.ts";
import type { PodSpec } from "../../api/pod.ts";
import { containerId, sandboxId } from "../../base/ids.ts";
import { computePodActions, isIdle, type PodActions } from "./pod-actions.ts";
import type { ContainerStatus, PodStatus, SandboxStatus } from "../status/pod-status.ts";
import { firstStart, type PodActionsContext } from "./pod-actions-context.ts";

const noBackOff: PodActionsContext = { ...firstStart, nowMs: 1000, evidence: () => 7 };

interface Summary {
  readonly kill: string | undefined;
  readonly sandbox: string | undefined;
  readonly stop: readonly string[];
  readonly start: readonly string[];
  readonly wait: readonly string[];
}

/** What of the actions a row of the table says: codes of the causes, and `name@attempt` of the starts. */
function summary(actions: PodActions): Summary {
  return {
    kill: actions.killPod?.code,
    sandbox: actions.createSandbox && `${actions.createSandbox.cause.code}@${actions.createSandbox.attempt}`,
    stop: actions.containersToKill.map(({ container, cause }) => `${container.id}:${cause.code}`),
    start: actions.containersToStart.map(({ container, attempt }) => `${container.name}@${attempt}`),
    wait: actions.waits.map(({ container, untilMs }) => `${container.name}:${untilMs}`),
  };
}

const nothing: Summary = { kill: undefined, sandbox: undefined, stop: [], start: [], wait: [] };

interface Row {
  readonly when: string;
  readonly spec?: Partial<PodSpec>;
  readonly sandboxes?: readonly SandboxStatus[];
  readonly containers?: readonly ContainerStatus[];
  readonly then: Partial<Summary>;
}

const exited = (exitCode: number, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  testContainer({ state: "exited", exitCode, finishedAt: 3n, reason: exitCode === 0 ? "Completed" : "Error", ...more });

const rows: readonly Row[] = [
  { when: "nothing exists", sandboxes: [], then: { sandbox: "SandboxMissing@0", start: ["c@0"] } },
  { when: "all runs as it should", containers: [testContainer()], then: {} },
  {
    when: "the sandbox is gone, and an init container had failed for good in it",
    spec: { restartPolicy: "Never", initContainers: [{ name: "i" }] },
    sandboxes: [testSandbox({ ready: false })],
    containers: [exited(1, { id: containerId("i"), name: "i" })],
    then: { kill: "InitContainerFailed" },
  },
  {
    when: "the sandbox is not ready",
    sandboxes: [testSandbox({ ready: false, attempt: 2 })],
    containers: [testContainer()],
    then: { kill: "SandboxNotReady", sandbox: "SandboxNotReady@3", start: ["c@1"] },
  },
  {
    when: "two sandboxes are ready",
    sandboxes: [testSandbox({ id: sandboxId("s1"), attempt: 1 }), testSandbox()],
    then: { kill: "SandboxSurplus", sandbox: "SandboxSurplus@2", start: ["c@0"] },
  },
  {
    when: "the sandbox has no address",
    sandboxes: [testSandbox({ ips: [] })],
    then: { kill: "SandboxWithoutAddress", sandbox: "SandboxWithoutAddress@1", start: ["c@0"] },
  },
  {
    when: "the pod is on the node's network and the sandbox has no address",
    spec: { hostNetwork: true },
    sandboxes: [testSandbox({ ips: [], hostNetwork: true })],
    containers: [testContainer()],
    then: {},
  },
  {
    when: "the network mode changed",
    spec: { hostNetwork: true },
    then: { kill: "SandboxNetworkChanged", sandbox: "SandboxNetworkChanged@1", start: ["c@0"] },
  },
  { when: "Always and exit 0", containers: [exited(0)], then: { start: ["c@1"] } },
  { when: "Always and exit 1", containers: [exited(1, { restartCount: 4 })], then: { start: ["c@5"] } },
  {
    when: "OnFailure and exit 1",
    spec: { restartPolicy: "OnFailure" },
    containers: [exited(1)],
    then: { start: ["c@1"] },
  },
  {
    when: "OnFailure and exit 0",
    spec: { restartPolicy: "OnFailure" },
    containers: [exited(0)],
    then: { kill: "PodCompleted" },
  },
  {
    when: "Never and exit 1",
    spec: { restartPolicy: "Never" },
    containers: [exited(1)],
    then: { kill: "PodCompleted" },
  },
  {
    when: "Never and the sandbox died after the container ran",
    spec: { restartPolicy: "Never" },
    sandboxes: [testSandbox({ ready: false })],
    containers: [exited(0)],
    then: { kill: "PodCompleted" },
  },
  {
    when: "Never and the sandbox died before any container was made",
    spec: { restartPolicy: "Never" },
    sandboxes: [testSandbox({ ready: false })],
    then: { kill: "SandboxNotReady", sandbox: "SandboxNotReady@1", start: ["c@0"] },
  },
  {
    when: "OnFailure, the sandbox died and one container had succeeded",
    spec: {
      restartPolicy: "OnFailure",
      containers: [
        { name: "a", image: "busybox" },
        { name: "b", image: "busybox" },
      ],
    },
    sandboxes: [testSandbox({ ready: false })],
    containers: [exited(0, { name: "a" }), exited(137, { name: "b" })],
    then: { kill: "SandboxNotReady", sandbox: "SandboxNotReady@1", start: ["b@1"] },
  },
  {
    when: "OnFailure, the sandbox died and all had succeeded",
    spec: { restartPolicy: "OnFailure" },
    sandboxes: [testSandbox({ ready: false })],
    containers: [exited(0)],
    then: { kill: "PodCompleted" },
  },
  {
    when: "Never, the sandbox died and one container's own policy lets it run again",
    spec: {
      restartPolicy: "Never",
      containers: [
        { name: "a", image: "busybox", restartPolicy: "Always" },
        { name: "b", image: "busybox" },
      ],
    },
    sandboxes: [testSandbox({ ready: false })],
    containers: [exited(0, { name: "a" }), exited(0, { name: "b" })],
    then: { kill: "SandboxNotReady", sandbox: "SandboxNotReady@1", start: ["a@1"] },
  },
  {
    when: "Always, the sandbox died and one container of its own policy Never had ended",
    spec: {
      restartPolicy: "Always",
      containers: [
        { name: "a", image: "busybox", restartPolicy: "Never" },
        { name: "b", image: "busybox" },
      ],
    },
    sandboxes: [testSandbox({ ready: false })],
    containers: [exited(1, { name: "a" }), exited(137, { name: "b" })],
    then: { kill: "SandboxNotReady", sandbox: "SandboxNotReady@1", start: ["b@1"] },
  },
  {
    when: "a container was created and not started",
    containers: [testContainer({ state: "created" })],
    then: { start: ["c@0"] },
  },
  {
    when: "the runtime lost track of a container",
    containers: [testContainer({ state: "unknown" })],
    then: { stop: ["c-id:ContainerUnknown"], start: ["c@1"] },
  },
  {
    when: "the image changed",
    containers: [testContainer({ image: "busybox:old" })],
    then: { stop: ["c-id:ContainerDefinitionChanged"], start: ["c@1"] },
  },
  {
    when: "a running container has no hash",
    containers: [testContainer({ hash: "" })],
    then: {},
  },
  {
    when: "only the newest instance counts",
    containers: [testContainer({ restartCount: 1 }), exited(1, { id: containerId("old") })],
    then: {},
  },
  {
    when: "one of two is missing",
    spec: {
      containers: [
        { name: "a", image: "busybox" },
        { name: "b", image: "busybox" },
      ],
    },
    containers: [testContainer({ name: "b" })],
    then: { start: ["a@0"] },
  },
  {
    when: "Never and one of two is over",
    spec: {
      restartPolicy: "Never",
      containers: [
        { name: "a", image: "busybox" },
        { name: "b", image: "busybox" },
      ],
    },
    containers: [exited(1, { name: "a" }), testContainer({ name: "b" })],
    then: {},
  },
];

describe("computePodActions", () => {
  for (const row of rows) {
    test(row.when, () => {
      const status = testStatus(row.sandboxes ?? [testSandbox()], row.containers ?? []);
      const actions = computePodActions(testPod(row.spec), status, noBackOff);
      const start = row.containers === undefined && row.then.start === undefined ? ["c@0"] : [];
      assert.deepEqual(summary(actions), { ...nothing, start, ...row.then });
    });
  }

  test("a container in back-off waits, with the exit as its cause and evidence", () => {
    const context = { ...noBackOff, backOffEndsAt: () => 5000 };
    const actions = computePodActions(testPod(), testStatus([testSandbox()], [exited(3)]), context);
    assert.deepEqual(summary(actions), { ...nothing, wait: ["c:5000"] });
    assert.equal(actions.waits[0]?.cause.message, "container c exited with code 3 (Error)");
    assert.equal(actions.waits[0]?.cause.entry, 7);
    assert.ok(isIdle(actions));
  });

  test("the container starts after its back-off", () => {
    const context = { ...noBackOff, backOffEndsAt: () => 1000 };
    const actions = computePodActions(testPod(), testStatus([testSandbox()], [exited(3)]), context);
    assert.deepEqual(summary(actions), { ...nothing, start: ["c@1"] });
  });

  test("a container with an operation in progress is left alone, and keeps its pod running", () => {
    const context = { ...noBackOff, busy: new Set(["c"]) };
    const never = testPod({ restartPolicy: "Never" });
    assert.deepEqual(summary(computePodActions(never, testStatus([testSandbox()], [exited(1)]), context)), nothing);
    assert.deepEqual(summary(computePodActions(testPod(), testStatus([testSandbox()]), context)), nothing);
  });

  test("a first start waits for the first start of a container ahead of it", () => {
    const spec = {
      containers: [
        { name: "a", image: "busybox" },
        { name: "b", image: "busybox" },
      ],
    };
    const busy = { ...noBackOff, busy: new Set(["a"]) };
    const first = computePodActions(testPod(spec), testStatus([testSandbox()]), busy);
    assert.deepEqual(summary(first), nothing);
    const restarting = testStatus([testSandbox()], [exited(1, { name: "a" })]);
    assert.deepEqual(summary(computePodActions(testPod(spec), restarting, busy)), { ...nothing, start: ["b@0"] });
  });

  test("a failed start is retried at its time", () => {
    const context = { ...noBackOff, retryAt: () => 4000 };
    const status = testStatus([testSandbox()]);
    assert.deepEqual(summary(computePodActions(testPod(), status, context)), { ...nothing, wait: ["c:4000"] });
    const later = computePodActions(testPod(), status, { ...context, nowMs: 4000 });
    assert.deepEqual(summary(later), { ...nothing, start: ["c@0"] });
  });

  test("a failed stop is retried at its time", () => {
    const context = { ...noBackOff, retryAt: () => 4000 };
    for (const container of [
      testContainer({ image: "busybox:old", hash: "other" }),
      testContainer({ state: "unknown" }),
    ]) {
      const status = testStatus([testSandbox()], [container]);
      assert.deepEqual(summary(computePodActions(testPod(), status, context)), { ...nothing, wait: ["c:4000"] });
      const later = computePodActions(testPod(), status, { ...context, nowMs: 4000 });
      assert.deepEqual([later.containersToKill.length, later.waits], [1, []]);
    }
  });

  test("a failed sandbox creation is retried at its time", () => {
    const context = { ...noBackOff, sandboxRetryAt: 4000 };
    const waiting = computePodActions(testPod(), testStatus([]), context);
    assert.deepEqual(summary(waiting), nothing);
    assert.equal(waiting.sandboxWaitUntilMs, 4000);
    const later = computePodActions(testPod(), testStatus([]), { ...context, nowMs: 4000 });
    assert.deepEqual(summary(later), { ...nothing, sandbox: "SandboxMissing@0", start: ["c@0"] });
  });

  test("a leftover that was never started is to be removed", () => {
    const leftover = testContainer({ state: "created", restartCount: 2 });
    const actions = computePodActions(testPod(), testStatus([testSandbox()], [leftover]), noBackOff);
    assert.equal(actions.containersToStart[0]?.leftover, leftover);
    assert.equal(actions.containersToStart[0]?.attempt, 2);
  });
});

const containerStates = fc.record({
  state: fc.constantFrom("created", "running", "exited", "unknown"),
  exitCode: fc.integer({ min: 0, max: 2 }),
  restartCount: fc.integer({ min: 0, max: 5 }),
});
const situations = fc.record({
  policy: fc.constantFrom("Always", "OnFailure", "Never"),
  sandboxes: fc.array(fc.record({ ready: fc.boolean(), attempt: fc.integer({ min: 0, max: 3 }) }), { maxLength: 2 }),
  a: fc.option(containerStates, { nil: undefined }),
  b: fc.option(containerStates, { nil: undefined }),
  backOffMs: fc.option(fc.integer({ min: 0, max: 2000 }), { nil: undefined }),
});

function situation(drawn: typeof situations extends fc.Arbitrary<infer T> ? T : never): {
  spec: Partial<PodSpec>;
  status: PodStatus;
} {
  const names = ["a", "b"] as const;
  const containers = names.flatMap((name) =>
    drawn[name] === undefined ? [] : [testContainer({ name, ...drawn[name] })],
  );
  const sandboxes = drawn.sandboxes
    .map((sandbox, index) => testSandbox({ ...sandbox, id: sandboxId(`s${index}`) }))
    .toSorted((x, y) => y.attempt - x.attempt);
  const spec: Partial<PodSpec> = {
    restartPolicy: drawn.policy,
    containers: names.map((name) => ({ name, image: "busybox" })),
  };
  return { spec, status: testStatus(sandboxes, containers) };
}

/**
 * The rules in reverse: not what to do, but the conditions that must hold for each container after a completed round.
 * Written independently of the implementation.
 */
function mayStart(policy: string, current: ContainerStatus | undefined, sandbox: SandboxStatus | undefined): boolean {
  if (current === undefined || current.state === "created") return true;
  // What is stopped with its sandbox does not run again under Never.
  if (current.state === "unknown") return policy !== "Never" || current.sandboxId === sandbox?.id;
  if (current.state === "running") return policy !== "Never" && sandbox === undefined;
  return policy === "Always" || (policy === "OnFailure" && current.exitCode !== 0);
}

describe("computePodActions for any situation", () => {
  test("starts a container only when its policy allows, never twice, and names a cause for everything", () => {
    fc.assert(
      fc.property(situations, (drawn) => {
        const { spec, status } = situation(drawn);
        const actions = computePodActions(testPod(spec), status, {
          ...noBackOff,
          backOffEndsAt: () => drawn.backOffMs,
        });
        const names = actions.containersToStart.map(({ container }) => container.name);
        assert.equal(new Set(names).size, names.length);
        for (const { container, attempt, cause } of actions.containersToStart) {
          const current = status.containers.find(({ name }) => name === container.name);
          assert.ok(mayStart(drawn.policy, current, actions.sandbox), `${container.name} may not start`);
          assert.ok(attempt >= (current?.restartCount ?? 0));
          assert.notEqual(cause.message, "");
        }
        for (const wait of actions.waits) assert.ok(wait.untilMs > noBackOff.nowMs);
        const { containersToStart, waits } = actions;
        if (actions.createSandbox !== undefined) assert.ok(containersToStart.length + waits.length > 0);
        if (actions.createSandbox !== undefined && status.sandboxes.length > 0) assert.ok(actions.killPod);
      }),
      { numRuns: 2000 },
    );
  });

  test("covers each container: it runs, has ended, waits or is started", () => {
    fc.assert(
      fc.property(situations, (drawn) => {
        const { spec, status } = situation(drawn);
        const actions = computePodActions(testPod(spec), status, {
          ...noBackOff,
          backOffEndsAt: () => drawn.backOffMs,
        });
        if (actions.killPod !== undefined && actions.createSandbox === undefined) return;
        for (const name of ["a", "b"]) {
          const current = status.containers.find((container) => container.name === name);
          const handled = [...actions.containersToStart, ...actions.waits].some(
            ({ container }) => container.name === name,
          );
          const rests = current !== undefined && !mayStart(drawn.policy, current, actions.sandbox);
          assert.ok(handled || rests, `${name} is forgotten`);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
