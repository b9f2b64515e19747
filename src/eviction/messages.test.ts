import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, podWith, thresholdOf } from "../../test/support/eviction.ts";
import { evictionMessage } from "./messages.ts";
import type { PodUsage } from "./pod-usage.ts";

const mi = 1 << 20;
const usage: PodUsage = {
  memoryBytes: 90 * mi,
  containers: [
    { name: "c", memoryBytes: 60 * mi, rootfs: { bytes: 5000, inodes: 1 }, logs: { bytes: 1000, inodes: 1 } },
    { name: "init", memoryBytes: 30 * mi },
    { name: "debugger", memoryBytes: 500 * mi },
  ],
  volumes: [],
};
const init = [{ name: "init", image: "busybox", resources: { requests: { memory: "1Gi" } } }];

test("an eviction for memory names the containers above their request, in upstream's words", () => {
  const due = [thresholdOf("memory.available", "100M"), thresholdOf("memory.available", "1Gi", 1000)];
  const observations = observed({ "memory.available": 99_614_720n });
  const pod = podWith("web", { memory: "10Mi" }, { initContainers: init });
  assert.deepEqual(evictionMessage(pod, usage, { resource: "memory", due, observations }), {
    message:
      "The node was low on resource: memory. Threshold quantity: 100M, available: 95Mi. " +
      "Container c was using 60Mi, request is 10Mi, has larger consumption of memory. ",
    annotations: {
      offending_containers: "c",
      offending_containers_usage: "60Mi",
      starved_resource: "memory",
    },
  });
});

test("for a pod with pod-level requests, that is mentioned as well", () => {
  const pod = podWith("web", {}, { resources: { requests: { memory: "20Mi" } } });
  const starvation = { resource: "memory", due: [], observations: observed({}) } as const;
  const { message, annotations } = evictionMessage(pod, usage, starvation);
  assert.equal(
    message,
    "The node was low on resource: memory. " +
      "Pod web was using 90Mi, request is 20Mi, has larger consumption of memory. " +
      "Container c was using 60Mi, request is 0, has larger consumption of memory. ",
  );
  assert.deepEqual([annotations["offending_pod"], annotations["offending_pod_usage"]], ["web", "90Mi"]);
});

test("for disks, writable layers and logs count; for inodes and processes no container is named", () => {
  const pod = podWith("web", { "ephemeral-storage": "4k" });
  const message = (signal: "nodefs.available" | "nodefs.inodesFree" | "pid.available", resource: string): string => {
    const due = [thresholdOf(signal, 0.1)];
    const observations = observed({ [signal]: 1000n }, 20_480n);
    return evictionMessage(pod, usage, { resource: resource as "inodes", due, observations }).message;
  };
  assert.equal(
    message("nodefs.available", "ephemeral-storage"),
    "The node was low on resource: ephemeral-storage. Threshold quantity: 2Ki, available: 1k. " +
      "Container c was using 6000, request is 4k, has larger consumption of ephemeral-storage. ",
  );
  assert.equal(
    message("nodefs.inodesFree", "inodes"),
    "The node was low on resource: inodes. Threshold quantity: 2Ki, available: 1k. ",
  );
  assert.equal(
    message("pid.available", "pids"),
    "The node was low on resource: pids. Threshold quantity: 2Ki, available: 1k. ",
  );
});

test("with unknown usage only the node's shortage is mentioned", () => {
  const starvation = { resource: "pids", due: [], observations: observed({}) } as const;
  assert.deepEqual(evictionMessage(podWith("web"), undefined, starvation), {
    message: "The node was low on resource: pids. ",
    annotations: {},
  });
});
