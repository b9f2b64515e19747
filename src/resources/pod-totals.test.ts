import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { formatList, limitIsDeclared, podLimits, podRequests } from "./pod-totals.ts";

const sidecar = (cpu: string) => containerWith(`sidecar-${cpu}`, { cpu }, { cpu }, { restartPolicy: "Always" });
const init = (cpu: string) => containerWith(`init-${cpu}`, { cpu }, { cpu });

test("regular containers and sidecars add up", () => {
  const pod = podWith({
    containers: [containerWith("a", { cpu: "100m", memory: "1Gi" }), containerWith("b", { cpu: 1 })],
    initContainers: [sidecar("50m")],
  });
  assert.deepEqual(formatList(podRequests(pod)), { cpu: "1150m", memory: "1Gi" });
});

test("an init container counts with the sidecars before it, if their sum is higher", () => {
  const containers = [containerWith("a", { cpu: 1 })];
  const first = podWith({ containers, initContainers: [init("2"), sidecar("500m")] });
  const second = podWith({ containers, initContainers: [sidecar("500m"), init("2")] });
  assert.equal(podRequests(first).get("cpu")?.toString(), "2");
  assert.equal(podRequests(second).get("cpu")?.toString(), "2500m");
});

test("pod-level resources replace the sum, if supported at pod level", () => {
  const pod = podWith({
    containers: [containerWith("a", { cpu: 1, memory: "1Gi", "ephemeral-storage": "1Gi" })],
    resources: { requests: { cpu: 3, "ephemeral-storage": "9Gi" } },
  });
  assert.deepEqual(formatList(podRequests(pod)), { cpu: "3", memory: "1Gi", "ephemeral-storage": "1Gi" });
});

test("overhead is added to requests, and to limits that are set", () => {
  const pod = podWith({
    containers: [containerWith("a", { cpu: 1 }, { memory: "1Gi" })],
    overhead: { cpu: "250m", memory: "64Mi" },
  });
  assert.deepEqual(formatList(podRequests(pod)), { cpu: "1250m", memory: "64Mi" });
  assert.deepEqual(formatList(podLimits(pod)), { memory: "1088Mi" });
  assert.deepEqual(formatList(podLimits(pod, { excludeOverhead: true })), { memory: "1Gi" });
});

test("a limit is declared if each container or the pod has one", () => {
  const limited = containerWith("a", undefined, { cpu: 1, memory: "1Gi" });
  const free = containerWith("b", undefined, { cpu: 1 });
  assert.equal(limitIsDeclared(podWith({ containers: [limited, free] }), "cpu"), true);
  assert.equal(limitIsDeclared(podWith({ containers: [limited, free] }), "memory"), false);
  assert.equal(
    limitIsDeclared(podWith({ containers: [free], resources: { limits: { memory: "1Gi" } } }), "memory"),
    true,
  );
  assert.equal(limitIsDeclared(podWith({ containers: [limited], initContainers: [free] }), "memory"), false);
});
