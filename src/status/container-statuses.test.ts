import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import { runtimeContainer, runtimeStatus, statusInputs } from "../../test/support/runtime-status.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerStatus } from "../api/status.ts";
import { containerId } from "../base/ids.ts";
import type { ContainerStatus as RuntimeContainerStatus } from "../runtime/status/pod-status.ts";
import { containerStatuses } from "./container-statuses.ts";
import type { StatusInputs } from "./inputs.ts";

const container = { name: "c", image: "image:1" };
const onFailure = podWith({ containers: [container], restartPolicy: "OnFailure" });

function statusOf(
  pod: Pod,
  instances: readonly RuntimeContainerStatus[],
  before?: ContainerStatus,
  changed: Partial<StatusInputs> = {},
): ContainerStatus {
  const inputs = statusInputs(pod, { podStatus: runtimeStatus(pod, instances), ...changed });
  const [status] = containerStatuses(inputs, "regular", pod.spec.containers, before && [before]);
  assert.ok(status);
  return status;
}

const exit = (exitCode: number, changed: Parameters<typeof runtimeContainer>[1] = {}) =>
  runtimeContainer("c", { state: "exited", exitCode, reason: exitCode === 0 ? "Completed" : "Error", ...changed });
const backOff = new Map([["c", { reason: "CrashLoopBackOff", message: "back-off 10s" }]]);

test("a container that was never created waits", () => {
  const status = statusOf(onFailure, []);
  assert.deepEqual(status.state, { waiting: { reason: "ContainerCreating" } });
  assert.deepEqual([status.ready, status.started, status.image, status.imageID], [false, false, "image:1", ""]);
  assert.deepEqual(statusOf(onFailure, [runtimeContainer("c", { state: "created" })]).state, { waiting: {} });
});

test("a container whose start failed waits for that reason", () => {
  const waiting = new Map([["c", { reason: "ErrImagePull", message: "no such image" }]]);
  const status = statusOf(onFailure, [], undefined, { waiting });
  assert.deepEqual(status.state, { waiting: { reason: "ErrImagePull", message: "no such image" } });
});

test("a start failure of an earlier run is reported until this run has tried", () => {
  const refused = { waiting: { reason: "CreateContainerConfigError", message: 'configmap "none" not found' } };
  const before = { ...statusOf(onFailure, []), state: refused };
  const again = statusOf(onFailure, [], before);
  assert.deepEqual(again.state, refused);
  assert.deepEqual(
    statusOf(onFailure, [], again, { tried: new Set(["c"]) }).state.waiting?.reason,
    "ContainerCreating",
  );
  const waiting = new Map([["c", { reason: "ErrImagePull", message: "no such image" }]]);
  assert.deepEqual(statusOf(onFailure, [], before, { waiting }).state.waiting?.reason, "ErrImagePull");
  for (const reason of ["CreatePodSandboxError", "CrashLoopBackOff", "PodInitializing"]) {
    const waits = { ...before, state: { waiting: { reason, message: "of something else" } } };
    assert.deepEqual(statusOf(onFailure, [], waits).state, { waiting: { reason: "ContainerCreating" } }, reason);
  }
});

test("a crashed container waits for its back-off, with its exit as the last state", () => {
  const status = statusOf(onFailure, [exit(7)], undefined, { waiting: backOff });
  assert.equal(status.state.waiting?.reason, "CrashLoopBackOff");
  assert.equal(status.lastState.terminated?.exitCode, 7);
});

test("an old waiting reason does not affect a container that runs or has ended for good", () => {
  assert.ok(statusOf(onFailure, [runtimeContainer("c")], undefined, { waiting: backOff }).state.running);
  assert.ok(statusOf(onFailure, [exit(0)], undefined, { waiting: backOff }).state.terminated);
  const deleted = { ...onFailure, metadata: { ...onFailure.metadata, deletionTimestamp: "2026-11-20T19:31:27Z" } };
  assert.ok(statusOf(deleted, [exit(7)], undefined, { waiting: backOff }).state.terminated);
});

test("a container that was stopped to be restarted waits if its exit code alone would be its end", () => {
  const stopped = { restarting: new Set([exit(0).id]) };
  const status = statusOf(onFailure, [exit(0)], undefined, stopped);
  assert.deepEqual(status.state, { waiting: { reason: "ContainerCreating" } });
  assert.deepEqual([status.lastState.terminated?.exitCode, status.restartCount, status.ready], [0, 0, false]);
  const again = statusOf(onFailure, [exit(0)], undefined, { ...stopped, waiting: backOff });
  assert.equal(again.state.waiting?.reason, "CrashLoopBackOff");
  assert.ok(statusOf(onFailure, [exit(143)], undefined, stopped).state.terminated, "this end may be shown");
  const next = runtimeContainer("c", { id: "next", state: "exited", exitCode: 0, restartCount: 1 });
  assert.ok(statusOf(onFailure, [next, exit(0)], undefined, stopped).state.terminated, "it has ended by itself since");
});

test("the previous instance is the last state", () => {
  const newest = runtimeContainer("c", { id: "new", restartCount: 1 });
  const status = statusOf(onFailure, [newest, exit(7, { id: "old" }), exit(8, { id: "older" })]);
  assert.equal(status.containerID, "containerd://new");
  assert.equal(status.lastState.terminated?.containerID, "containerd://old");
  assert.equal(status.restartCount, 1);
});

test("a last state that the runtime has lost is kept", () => {
  const crashed = statusOf(onFailure, [exit(7, { id: "old" })], undefined, { waiting: backOff });
  const status = statusOf(onFailure, [runtimeContainer("c", { id: "new", restartCount: 1 })], crashed);
  assert.equal(status.lastState.terminated?.containerID, "containerd://old");
  const again = statusOf(onFailure, [exit(7, { id: "old" })], crashed);
  assert.deepEqual(again.lastState, {});
});

test("a termination message follows the runtime's own message", () => {
  const terminationMessages = new Map([[containerId("c-0"), "boom\n"]]);
  const message = (own: string) =>
    statusOf(onFailure, [exit(7, { message: own })], undefined, { terminationMessages }).state.terminated?.message;
  assert.equal(message(""), "boom\n");
  assert.equal(message("runtime says"), "runtime says: boom\n");
});

test("messages are truncated to their share of the pod's status, between characters", () => {
  const pod = podWith({ containers: [container, { name: "d" }] });
  const terminationMessages = new Map([[containerId("c-0"), `x${"ä".repeat(6000)}`]]);
  const message = statusOf(pod, [exit(1)], undefined, { terminationMessages }).state.terminated?.message ?? "";
  assert.equal(new TextEncoder().encode(message).length, 6143);
  assert.ok(message.endsWith("ä"));
});

test("a running container that disappears has an unknown exit", () => {
  const before = statusOf(onFailure, [runtimeContainer("c")]);
  const gone = statusOf(onFailure, [], before);
  assert.deepEqual(gone.state, { waiting: { reason: "ContainerCreating" } });
  assert.deepEqual(
    [gone.lastState.terminated?.reason, gone.lastState.terminated?.exitCode],
    ["ContainerStatusUnknown", 137],
  );
  assert.equal(gone.restartCount, 1);
  const unknown = statusOf(onFailure, [runtimeContainer("c", { state: "unknown" })], before);
  assert.equal(unknown.state.terminated?.reason, "ContainerStatusUnknown");
  assert.equal(unknown.restartCount, 1);
  assert.deepEqual(statusOf(onFailure, [runtimeContainer("c", { state: "unknown" })]).state, { waiting: {} });
});

test("an unknown container that is to run again waits where its policy would make an end final", () => {
  const pod = podWith({ restartPolicy: "Never", containers: [container] });
  const unknown = [runtimeContainer("c", { state: "unknown" })];
  const before = statusOf(pod, [runtimeContainer("c")]);
  const waits = statusOf(pod, unknown, before);
  assert.deepEqual(waits.state, { waiting: { reason: "ContainerCreating" } });
  assert.equal(waits.lastState.terminated?.reason, "ContainerStatusUnknown");
  assert.equal(waits.restartCount, 1);
  assert.deepEqual(statusOf(pod, unknown, waits), waits);
  const ended = statusOf(pod, unknown, before, { podIsTerminal: true });
  assert.equal(ended.state.terminated?.reason, "ContainerStatusUnknown");
});

test("an observed exit stays when the container is gone", () => {
  const before = statusOf(onFailure, [exit(0)]);
  assert.deepEqual(statusOf(onFailure, [], before), before);
});

test("restart counts never decrease", () => {
  const before = statusOf(onFailure, [runtimeContainer("c", { restartCount: 5 })]);
  assert.equal(statusOf(onFailure, [runtimeContainer("c", { id: "new", restartCount: 0 })], before).restartCount, 5);
});

test("probes decide about started and ready, if there are any", () => {
  const running = [runtimeContainer("c")];
  const result = (state?: { ready?: boolean; started?: boolean }) => {
    const probes = new Map(state === undefined ? [] : [["c", state]]);
    const { started, ready } = statusOf(onFailure, running, undefined, { probes });
    return [started, ready];
  };
  assert.deepEqual(result(), [true, true]);
  assert.deepEqual(result({ ready: false }), [true, false]);
  assert.deepEqual(result({ started: false, ready: true }), [false, false]);
  assert.deepEqual(result({ started: true, ready: true }), [true, true]);
});

const sidecar = { name: "side", restartPolicy: "Always" } as const;
const withInit = podWith({ containers: [container], initContainers: [{ name: "z-init" }, sidecar] });

function initStatuses(
  instances: readonly RuntimeContainerStatus[],
  changed: Partial<StatusInputs> = {},
): ContainerStatus[] {
  const inputs = statusInputs(withInit, { podStatus: runtimeStatus(withInit, instances), ...changed });
  return containerStatuses(inputs, "init", withInit.spec.initContainers ?? [], undefined);
}

test("init containers are in spec order, ready when done, and regular ones wait for them", () => {
  const done = runtimeContainer("z-init", { state: "exited" });
  const statuses = initStatuses([done, runtimeContainer("side")]);
  assert.deepEqual(
    statuses.map(({ name, ready, started }) => [name, ready, started]),
    [
      ["z-init", true, false],
      ["side", true, true],
    ],
  );
  assert.equal(initStatuses([])[0]?.state.waiting?.reason, "PodInitializing");
});

test("a succeeded init container has no waiting reason", () => {
  const waiting = new Map([["z-init", { reason: "CrashLoopBackOff", message: "" }]]);
  const [failed] = initStatuses([runtimeContainer("z-init", { state: "exited", exitCode: 1 })], { waiting });
  assert.deepEqual(failed?.state, { waiting: { reason: "CrashLoopBackOff" } });
  const [done] = initStatuses([runtimeContainer("z-init", { state: "exited" })], { waiting });
  assert.ok(done?.state.terminated);
});

test("a lost init container counts as done when regular containers exist; a sidecar does not", () => {
  const [init, side] = initStatuses([runtimeContainer("c")]);
  assert.deepEqual([init?.state.terminated?.exitCode, init?.state.terminated?.reason], [0, "Completed"]);
  assert.equal(side?.state.waiting?.reason, "PodInitializing");
});

test("regular containers are sorted by name, ephemeral ones are never ready", () => {
  const pod = podWith({ containers: [{ name: "b" }, { name: "a" }], ephemeralContainers: [{ name: "e" }] });
  const inputs = statusInputs(pod, { podStatus: runtimeStatus(pod, [runtimeContainer("e")]) });
  const names = containerStatuses(inputs, "regular", pod.spec.containers, undefined).map(({ name }) => name);
  assert.deepEqual(names, ["a", "b"]);
  const [ephemeral] = containerStatuses(inputs, "ephemeral", pod.spec.ephemeralContainers ?? [], undefined);
  assert.deepEqual([ephemeral?.ready, ephemeral?.started], [false, undefined]);
});

test("resources, mounts, user and stop signal are reported", () => {
  const volumeMounts = [
    { name: "v", mountPath: "/v" },
    { name: "r", mountPath: "/r", readOnly: true, recursiveReadOnly: "IfPossible" },
  ];
  const resources = { requests: { cpu: "0.1" }, limits: { memory: "1024Mi" } };
  const pod = podWith({ containers: [{ ...container, volumeMounts, resources }] });
  const user = { uid: 1n, gid: 2n, supplementalGroups: [3n] };
  const status = statusOf(pod, [runtimeContainer("c", { user, stopSignal: "SIGUSR1" })], undefined, {
    recursiveReadOnlyMounts: true,
  });
  assert.deepEqual(status.allocatedResources, { cpu: "100m" });
  assert.deepEqual(status.resources, { requests: { cpu: "100m" }, limits: { memory: "1Gi" } });
  assert.deepEqual(status.volumeMounts, [
    { name: "v", mountPath: "/v" },
    { name: "r", mountPath: "/r", readOnly: true, recursiveReadOnly: "Enabled" },
  ]);
  assert.deepEqual(status.user, { linux: { uid: 1, gid: 2, supplementalGroups: [3] } });
  assert.equal(status.stopSignal, "SIGUSR1");
});
