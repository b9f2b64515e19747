import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { recordedPods } from "../../test/support/vectors.ts";
import type { Pod } from "../api/pod.ts";
import { type QosClass, qosClass } from "./qos.ts";

const both = { cpu: "1", memory: "1Gi" };
const cases: [string, Partial<Pod["spec"]>, QosClass][] = [
  ["nothing asked for", { containers: [containerWith("a", undefined)] }, "BestEffort"],
  ["only zeros asked for", { containers: [containerWith("a", { cpu: "0" }, { memory: 0 })] }, "BestEffort"],
  ["only other resources asked for", { containers: [containerWith("a", { "example.com/gpu": 1 })] }, "BestEffort"],
  ["a request", { containers: [containerWith("a", { cpu: "1m" })] }, "Burstable"],
  ["a limit alone", { containers: [containerWith("a", undefined, { memory: "1Gi" })] }, "Burstable"],
  ["equal requests and limits", { containers: [containerWith("a", both, both)] }, "Guaranteed"],
  ["equal in another writing", { containers: [containerWith("a", { cpu: 1, memory: "1024Mi" }, both)] }, "Guaranteed"],
  ["a higher limit", { containers: [containerWith("a", both, { ...both, cpu: 2 })] }, "Burstable"],
  ["no CPU", { containers: [containerWith("a", { memory: "1Gi" }, { memory: "1Gi" })] }, "Burstable"],
  [
    "one container of two",
    { containers: [containerWith("a", both, both), containerWith("b", undefined)] },
    "Burstable",
  ],
  [
    "an init container that asks for nothing",
    { containers: [containerWith("a", both, both)], initContainers: [containerWith("i", undefined)] },
    "Burstable",
  ],
  [
    "an ephemeral container, which can't ask",
    { containers: [containerWith("a", both, both)], ephemeralContainers: [{ name: "e" }] },
    "Guaranteed",
  ],
  [
    "resources of the pod as a whole",
    { containers: [containerWith("a", undefined)], resources: { requests: both, limits: both } },
    "Guaranteed",
  ],
  [
    "requests of the pod as a whole alone",
    { containers: [containerWith("a", both, both)], resources: { requests: both } },
    "Burstable",
  ],
];

for (const [name, spec, expected] of cases) {
  test(`a pod with ${name} is ${expected}`, () => {
    assert.equal(qosClass(podWith(spec)), expected);
  });
}

test("recorded pods have the Go kubelet's class", () => {
  for (const pod of recordedPods()) assert.equal(qosClass(pod), pod.status.qosClass);
});
