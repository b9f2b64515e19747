import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod, testSandbox, testStatus } from "../../../test/support/observed.ts";
import type { Cause } from "../../journal/entry.ts";
import type { ContainerStatus } from "../status/pod-status.ts";
import { checkActions } from "./check-actions.ts";
import type { ContainerToKill, ContainerToStart } from "./container-decision.ts";
import { nothingToDo, type PodActions } from "./pod-actions.ts";

const cause: Cause = { code: "Resync", message: "a test says so" };
const sandbox = testSandbox();
const pod = testPod({
  initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" }],
  containers: [{ name: "a" }, { name: "b" }],
});

function start(name: string, more: Partial<ContainerToStart> = {}): ContainerToStart {
  const kind = name === "i" ? "init" : name === "s" ? "sidecar" : "regular";
  return { container: { name }, kind, attempt: 0, restart: false, leftover: undefined, cause, ...more };
}

function kill(container: ContainerStatus): ContainerToKill {
  return { container, cause, eventMessage: "" };
}

const instance = (name: string, more: Partial<ContainerStatus> = {}): ContainerStatus =>
  testContainer({ name, ...more });
const ended = instance("i", { state: "exited", exitCode: 0 });
const [sidecar, a] = [instance("s"), instance("a")];

/** The name of the invariant that the decision breaks. */
function broken(
  containers: readonly ContainerStatus[],
  actions: Partial<PodActions>,
  busy: readonly string[] = [],
): string | undefined {
  const all = { ...nothingToDo, sandbox, ...actions };
  try {
    checkActions(pod, testStatus([sandbox], containers), { busy: new Set(busy) }, all);
    return undefined;
  } catch (error) {
    return /^broken invariant: ([^:]+):/.exec(String(error instanceof Error ? error.message : error))?.[1];
  }
}

test("decisions for a pod that starts in order violate no invariant", () => {
  assert.equal(broken([], { containersToStart: [start("i")] }), undefined);
  assert.equal(broken([ended], { containersToStart: [start("s")] }), undefined);
  assert.equal(broken([sidecar, ended], { containersToStart: [start("a"), start("b")] }), undefined);
  assert.equal(broken([a], { containersToStart: [start("b")] }), undefined, "what ran before them is forgotten");
  assert.equal(broken([], { containersToStart: [start("b")] }, ["a"]), undefined, "one of them is being made");
});

test("regular containers that start before or with init containers violate an invariant", () => {
  const name = "regular containers wait for init containers";
  const starts = { containersToStart: [start("a")] };
  assert.equal(broken([ended], starts), name, "the sidecar has not started");
  assert.equal(broken([sidecar, instance("i")], starts), name, "an init container still runs");
  const unlike = { ...sandbox, id: instance("x").sandboxId ?? sandbox.id };
  assert.equal(broken([], { ...starts, sandbox: unlike }), name);
});

test("starts out of the spec's order, or twice, violate an invariant", () => {
  const order = "first starts keep the order of the spec";
  assert.equal(broken([sidecar, ended], { containersToStart: [start("b"), start("a")] }), order);
  const twice = "a container is started once a decision";
  assert.equal(broken([sidecar, ended], { containersToStart: [start("a"), start("a")] }), twice);
});

test("an instance that starts beside its predecessor, or with a used count, violates an invariant", () => {
  const again = { containersToStart: [start("a", { restart: true, attempt: 1 })] };
  assert.equal(broken([a, sidecar], again), "an instance starts after the previous one has stopped");
  assert.equal(broken([a, sidecar], { ...again, containersToKill: [kill(a)] }), undefined);
  const gone = instance("a", { state: "exited", restartCount: 1 });
  assert.equal(broken([gone, sidecar], again), "attempts continue from the previous instance");
});

test("a container with an operation in progress is neither started nor stopped, and an ended one not stopped", () => {
  assert.equal(
    broken([sidecar, ended], { containersToStart: [start("a")] }, ["a"]),
    "a container in an operation is not started",
  );
  assert.equal(broken([a], { containersToKill: [kill(a)] }, ["a"]), "a container in an operation is not stopped");
  assert.equal(broken([ended], { containersToKill: [kill(ended)] }), "a container that is stopped may still run");
});

test("a second sandbox beside a ready one violates an invariant, unless the first is stopped before", () => {
  const createSandbox = { attempt: 1, cause };
  assert.equal(broken([], { createSandbox }), "a sandbox replaces those that it stops");
  assert.equal(broken([], { createSandbox, killPod: cause }), undefined);
});
