import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { byUrgency, judgeResize, overcommitted, type ResizeNode, type WaitingResize } from "./resize-admission.ts";

interface Waiting {
  readonly priority?: number;
  readonly guaranteed?: boolean;
  /** Requested CPU; 1 is allocated. */
  readonly cpu?: string;
  readonly sinceMs?: number | undefined;
}

function waiting(name: string, { priority, guaranteed = false, cpu = "2", sinceMs }: Waiting): WaitingResize {
  const podOf = (amount: string): Pod => {
    const requests = { cpu: amount, memory: "1Gi" };
    const container = containerWith("c", requests, guaranteed ? requests : undefined);
    return podWith({ containers: [container], ...(priority === undefined ? {} : { priority }) }, { name });
  };
  return { wanted: podOf(cpu), granted: podOf("1"), sinceMs };
}

function order(waits: Readonly<Record<string, Waiting>>): string[] {
  return Object.entries(waits)
    .map(([name, wait]) => waiting(name, wait))
    .toSorted(byUrgency)
    .map(({ wanted }) => wanted.metadata.name);
}

test("decreases are granted first, then by priority", () => {
  assert.deepEqual(order({ low: {}, high: { priority: 5 }, less: { cpu: "500m" } }), ["less", "high", "low"]);
});

test("within a priority guaranteed pods come first, then those that have waited longest", () => {
  assert.deepEqual(
    order({
      unjudged: { sinceMs: undefined },
      late: { sinceMs: 2000 },
      early: { sinceMs: 1000 },
      guaranteed: { guaranteed: true, sinceMs: 3000 },
    }),
    ["guaranteed", "early", "late", "unjudged"],
  );
});

test("a resize that would change a container's swap is infeasible, one that would not may be granted", () => {
  const podOf = (memory: string): Pod =>
    podWith({ containers: [containerWith("c", { cpu: "1", memory }, { memory: "4Gi" })] });
  const node: ResizeNode = {
    allocatable: { cpu: "4", memory: "8Gi" },
    cgroupVersion: 2,
    swapAccounting: true,
  };
  const limitedSwap = { ...node, swapCapacityBytes: 4n << 30n };
  const none = (): undefined => undefined;
  assert.deepEqual(judgeResize(podOf("2Gi"), podOf("1Gi"), limitedSwap, none), {
    reason: "Infeasible",
    message: "In-place resize of containers with swap is not supported.",
  });
  assert.equal(judgeResize(podOf("2Gi"), podOf("1Gi"), node, none), undefined);
  const message = "The node had condition: [DiskPressure]. ";
  const deferred = judgeResize(podOf("2Gi"), podOf("1Gi"), node, () => message);
  assert.deepEqual(deferred, { reason: "Deferred", message });
});

test("a grant is an overcommitment if all pods together exceed the node in a resource that grew", () => {
  const { wanted, granted } = waiting("own", { cpu: "2" });
  const { granted: other } = waiting("other", {});
  const all = [wanted, other];
  assert.equal(overcommitted(wanted, granted, all, { allocatable: { cpu: "3", memory: "1Gi" } }), undefined);
  assert.equal(overcommitted(wanted, granted, all, { allocatable: { cpu: "2900m", memory: "1Gi" } }), "cpu");
});
