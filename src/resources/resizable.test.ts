import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../api/container.ts";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { resizeProblems, resourcesOf, sameResources, withoutResizable, withResources } from "./resizable.ts";

const one = containerWith("a", { cpu: "100m", memory: "64Mi" }, { cpu: "200m", memory: "128Mi" });

function problems(before: Container, after: Container, kind: "containers" | "initContainers" = "containers"): string[] {
  const other = kind === "initContainers" ? { containers: [one] } : {};
  return resizeProblems(podWith({ ...other, [kind]: [before] }), podWith({ ...other, [kind]: [after] })).map(
    ({ path, detail }) => `${path.join(".")}: ${detail}`,
  );
}

test("allocated resources replace those of the manifest, and nothing else changes", () => {
  const pod = podWith({ containers: [one, containerWith("new", { cpu: "1" })], resources: { limits: { cpu: "4" } } });
  const granted = { containers: new Map([["a", { requests: { cpu: "50m" } }]]), pod: { limits: { cpu: "2" } } };
  const result = withResources(pod, granted);
  assert.deepEqual(result.spec.containers[0]?.resources, { requests: { cpu: "50m" } });
  assert.deepEqual(result.spec.containers[1]?.resources, { requests: { cpu: "1" } });
  assert.deepEqual(result.spec.resources, { limits: { cpu: "2" } });
  assert.deepEqual(withResources(result, resourcesOf(pod)), pod);
});

test("two versions of a spec that differ only in cpu and memory are equal without them", () => {
  const before = podWith({ containers: [one], resources: { limits: { cpu: "1", "hugepages-2Mi": "2Mi" } } });
  const after = podWith({
    containers: [{ name: "a" }],
    resources: { limits: { memory: "1Gi", "hugepages-2Mi": "2Mi" } },
  });
  assert.deepEqual(withoutResizable(before.spec), withoutResizable(after.spec));
  assert.equal(sameResources(before, after), false);
  const other = podWith({ containers: [one], resources: { limits: { cpu: "1", "hugepages-2Mi": "4Mi" } } });
  assert.notDeepEqual(withoutResizable(before.spec), withoutResizable(other.spec));
});

test("requests and limits can be increased and decreased, and limits added", () => {
  assert.deepEqual(problems(one, containerWith("a", { cpu: "1", memory: "1Mi" }, { cpu: "2", memory: "2Mi" })), []);
  assert.deepEqual(problems(containerWith("a", { cpu: "1" }), containerWith("a", { cpu: "1" }, { cpu: "2" })), []);
});

test("requests and limits cannot be removed", () => {
  assert.deepEqual(problems(one, containerWith("a", { cpu: "100m" }, { cpu: "200m", memory: "128Mi" })), [
    "spec.containers.0.resources.requests.memory: resource requests cannot be removed",
  ]);
  const pod = podWith({ containers: [one], resources: { limits: { cpu: "1" } } });
  assert.match(
    resizeProblems(pod, podWith({ containers: [one] }))[0]?.detail ?? "",
    /pod-level resources cannot be removed/,
  );
});

test("the QoS class may not change", () => {
  const guaranteed = containerWith("a", { cpu: "1", memory: "1Gi" }, { cpu: "1", memory: "1Gi" });
  const burstable = containerWith("a", { cpu: "1", memory: "1Gi" }, { cpu: "2", memory: "1Gi" });
  assert.deepEqual(problems(guaranteed, burstable), [
    "spec: Pod QOS Class may not change as a result of resizing: Guaranteed to Burstable",
  ]);
});

test("only cpu and memory can be resized, and no init container by a restart", () => {
  const pages = (size: string): Container => containerWith("a", { cpu: "1" }, { "hugepages-2Mi": size });
  assert.match(problems(pages("2Mi"), pages("4Mi")).join(), /only cpu and memory resources are mutable/);
  const policy = { resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] };
  const init = (cpu: string): Container => containerWith("i", { cpu }, undefined, policy);
  assert.match(problems(init("1"), init("2"), "initContainers").join(), /RestartContainer cannot be resized/);
});
