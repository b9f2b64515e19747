import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { resourcesOf } from "../resources/resizable.ts";
import type { ContainerResources } from "../runtime/status/pod-status.ts";
import { actualResources, pendingResize, podResourceStatus, resizeConditionsOf } from "./resources.ts";

const granted = containerWith("c", { cpu: "200m", memory: "64Mi" }, { cpu: "400m", memory: "128Mi" });
const given = resourcesOf(
  podWith({ containers: [containerWith("c", { cpu: "100m", memory: "32Mi" }, { cpu: "200m", memory: "64Mi" })] }),
);

function shown(told: ContainerResources | undefined, state: "running" | "exited" = "running"): unknown {
  return actualResources(granted, { state, resources: told }, given);
}

test("a running container reports the runtime's values, and its actuated memory request", () => {
  const told = { cpuRequest: 150n, cpuLimit: 300n, memoryLimit: 96n << 20n };
  assert.deepEqual(shown(told), {
    limits: { cpu: "300m", memory: "96Mi" },
    requests: { cpu: "150m", memory: "32Mi" },
  });
});

test("values that the runtime does not report come from the actuated record", () => {
  const before = { limits: { cpu: "200m", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } };
  assert.deepEqual(shown(undefined), before);
  assert.deepEqual(shown({ cpuRequest: undefined, cpuLimit: undefined, memoryLimit: undefined }), before);
});

test("a container that does not run reports its allocation, and so does one whose values the kernel rounds up", () => {
  assert.deepEqual(shown(undefined, "exited"), {
    limits: granted.resources?.limits,
    requests: granted.resources?.requests,
  });
  const tiny = containerWith("c", { cpu: "1m" }, { cpu: "5m" });
  const told = { cpuRequest: 2n, cpuLimit: 10n, memoryLimit: undefined };
  assert.deepEqual(actualResources(tiny, { state: "running", resources: told }, undefined), {
    limits: { cpu: "5m" },
    requests: { cpu: "1m" },
  });
});

test("a pod reports its pod-level allocation and actual values", () => {
  const pod = podWith({ containers: [granted] });
  assert.deepEqual(podResourceStatus(pod, given), {
    allocatedResources: { cpu: "200m", memory: "64Mi" },
    resources: { limits: { cpu: "200m", memory: "64Mi" }, requests: { cpu: "100m", memory: "32Mi" } },
  });
  const whole = podWith({ containers: [{ name: "c" }], resources: { limits: { cpu: "2" }, requests: { cpu: "1" } } });
  assert.deepEqual(podResourceStatus(whole, undefined).resources, { limits: { cpu: "2" }, requests: { cpu: "1" } });
});

test("the generation of a resize in progress is that of the request, until it completes", () => {
  const pod = podWith({ containers: [granted] }, { generation: 5 });
  const pending = { reason: "Deferred", message: "no room" } as const;
  const told = (inProgress: { error: string | undefined; generation?: number }, before?: number): unknown => {
    const condition = {
      type: "PodResizeInProgress",
      status: "True",
      lastProbeTime: null,
      lastTransitionTime: "",
    } as const;
    const conditions = before === undefined ? [] : [{ ...condition, observedGeneration: before }];
    const previous = { phase: "Running" as const, conditions };
    const resize = { pending, inProgress, actuated: undefined };
    return resizeConditionsOf({ pod, previous, now: 0, podIsTerminal: false, resize }).map(
      ({ type, observedGeneration }) => `${type} ${observedGeneration}`,
    );
  };
  assert.deepEqual(told({ error: "in use", generation: 4 }, 3), ["PodResizePending 5", "PodResizeInProgress 4"]);
  // Allocated in an earlier run, whose last status has it; without one it is unknown.
  assert.deepEqual(told({ error: undefined }, 3), ["PodResizePending 5", "PodResizeInProgress 3"]);
  assert.deepEqual(told({ error: undefined }), ["PodResizePending 5", "PodResizeInProgress 5"]);
});

test("a pending resize and one in progress are conditions, until the pod ends", () => {
  const pod = podWith({ containers: [granted] });
  const inputs = { pod, previous: undefined, now: 1_700_000_000_000, podIsTerminal: false };
  const pending = { reason: "Deferred", message: "no room" } as const;
  const told = (resize: NonNullable<Parameters<typeof resizeConditionsOf>[0]["resize"]>): unknown =>
    resizeConditionsOf({ ...inputs, resize }).map(({ type, status, reason, message }) => [
      type,
      status,
      reason,
      message,
    ]);
  const actuated = undefined;
  assert.deepEqual(told({ pending, inProgress: undefined, actuated }), [
    ["PodResizePending", "True", "Deferred", "no room"],
  ]);
  assert.deepEqual(told({ pending: undefined, inProgress: { error: undefined }, actuated }), [
    ["PodResizeInProgress", "True", undefined, undefined],
  ]);
  assert.deepEqual(told({ pending: undefined, inProgress: { error: "in use" }, actuated }), [
    ["PodResizeInProgress", "True", "Error", "in use"],
  ]);
  const resize = { pending, inProgress: { error: undefined }, actuated };
  assert.deepEqual(resizeConditionsOf({ ...inputs, podIsTerminal: true, resize }), []);
});

test("a status tells why the resize to a pod's generation is pending, not to another one", () => {
  const pending = { reason: "Deferred", message: "no room" } as const;
  const pod = { ...podWith({ containers: [granted] }), metadata: { ...podWith({}).metadata, generation: 3 } };
  const resize = { pending, inProgress: undefined, actuated: undefined };
  const conditions = resizeConditionsOf({ pod, previous: undefined, now: 0, podIsTerminal: false, resize });
  const status = { phase: "Running", conditions } as const;
  assert.deepEqual(pendingResize(pod, status), pending);
  assert.equal(pendingResize({ ...pod, metadata: { ...pod.metadata, generation: 4 } }, status), undefined);
  assert.equal(pendingResize(podWith({ containers: [granted] }), status), undefined, "a static pod has none");
  assert.equal(pendingResize(pod, { phase: "Running" }), undefined);
  assert.equal(pendingResize(pod, undefined), undefined);
});
