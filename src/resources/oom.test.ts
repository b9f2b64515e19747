import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { oomScoreAdjust } from "./oom.ts";

const capacity = 2n ** 34n;
const both = { cpu: 1, memory: "1Gi" };
const half = containerWith("half", { memory: "8Gi" });
const small = containerWith("small", { memory: "1Mi" });

test("guaranteed and node-critical pods are killed last, best-effort ones first", () => {
  const guaranteed = containerWith("a", both, both);
  const bestEffort = containerWith("a", undefined);
  assert.equal(oomScoreAdjust(podWith({ containers: [guaranteed] }), guaranteed, capacity), -997n);
  assert.equal(oomScoreAdjust(podWith({ containers: [bestEffort] }), bestEffort, capacity), 1000n);
  const critical = { containers: [bestEffort], priorityClassName: "system-node-critical" };
  assert.equal(oomScoreAdjust(podWith({ ...critical, priority: 2_000_001_000 }), bestEffort, capacity), -997n);
  const annotations = { "kubernetes.io/config.source": "file" };
  assert.equal(oomScoreAdjust(podWith(critical, { annotations }), bestEffort, capacity), -997n);
});

test("the name of a priority class alone does not make a pod critical", () => {
  const container = containerWith("a", undefined);
  const pod = podWith({ containers: [container], priorityClassName: "system-node-critical" });
  assert.equal(oomScoreAdjust(pod, container, capacity), 1000n);
  const cluster = podWith({
    containers: [container],
    priorityClassName: "system-cluster-critical",
    priority: 2_000_000_000,
  });
  assert.equal(oomScoreAdjust(cluster, container, capacity), 1000n);
});

test("a burstable container's score falls with its request, between the other classes'", () => {
  const pod = podWith({ containers: [half, small] });
  assert.equal(oomScoreAdjust(pod, half, capacity), 500n);
  assert.equal(oomScoreAdjust(pod, small, capacity), 999n);
  const all = containerWith("all", { memory: "64Gi" });
  assert.equal(oomScoreAdjust(podWith({ containers: [all] }), all, capacity), 3n);
});

test("a sidecar is not killed before the containers that need it", () => {
  const sidecar = containerWith("sidecar", undefined, undefined, { restartPolicy: "Always" });
  const quarter = containerWith("quarter", { memory: "4Gi" });
  const pod = podWith({ containers: [half, quarter], initContainers: [sidecar] });
  assert.equal(oomScoreAdjust(pod, sidecar, capacity), 750n);
  assert.equal(
    oomScoreAdjust(podWith({ containers: [half, small], initContainers: [sidecar] }), sidecar, capacity),
    999n,
  );
});

test("a pod's request beyond its containers' is shared among them", () => {
  const pod = podWith({
    containers: [containerWith("a", undefined), small],
    resources: { requests: { memory: "8193Mi" } },
  });
  assert.equal(oomScoreAdjust(pod, containerWith("a", undefined), capacity), 750n);
});
