import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { containerResources, type ResourceSettings } from "./container-resources.ts";
import { memoryLimits } from "./memory-limits.ts";
import { changesSwap } from "./swap.ts";

const settings: ResourceSettings = {
  cpuQuota: true,
  cpuPeriodMicroseconds: 100_000n,
  cgroupVersion: 2,
  singleProcessOomKill: false,
  swapAccounting: true,
  memoryCapacityBytes: 2n ** 34n,
  hugePageSizes: [2n ** 16n, 2n ** 21n, 2n ** 30n],
  allocatable: {},
};
/** With the edits of the node's settings. */
const resourcesOf = (pod: Pod, container: Container, node: ResourceSettings) =>
  containerResources(pod, container, node, memoryLimits(node).edits(pod, container));

const container = containerWith("c", undefined, { cpu: "500m", memory: "1Gi", "hugepages-2Mi": "4Mi" });
const pod = podWith({ containers: [container] });

test("the default request is the limit", () => {
  const { cpuShares, cpuQuota } = resourcesOf(pod, container, settings);
  assert.deepEqual([cpuShares, cpuQuota], [512n, 50_000n]);
});

test("on cgroup v2 swap has a limit of its own, and OOM kills end the whole container", () => {
  const resources = resourcesOf(pod, container, settings);
  assert.deepEqual(resources.unified, { "memory.oom.group": "1", "memory.swap.max": "0" });
  assert.equal(resources.memorySwapLimitInBytes, undefined);
  const single = resourcesOf(pod, container, { ...settings, singleProcessOomKill: true, swapAccounting: false });
  assert.deepEqual(single.unified, {});
});

test("on cgroup v1 memory and swap share a limit, if the kernel accounts swap", () => {
  const v1: ResourceSettings = { ...settings, cgroupVersion: 1, singleProcessOomKill: true };
  assert.equal(resourcesOf(pod, container, v1).memorySwapLimitInBytes, 2n ** 30n);
  assert.equal(resourcesOf(pod, container, { ...v1, swapAccounting: false }).memorySwapLimitInBytes, undefined);
});

test("every huge page size of the machine has a limit", () => {
  const { hugepageLimits } = resourcesOf(pod, container, settings);
  assert.deepEqual(hugepageLimits, [
    { pageSize: "64KB", limit: 0n },
    { pageSize: "2MB", limit: 4_194_304n },
    { pageSize: "1GB", limit: 0n },
  ]);
});

test("CPU limits are left out when they are not enforced", () => {
  const resources = resourcesOf(pod, container, { ...settings, cpuQuota: false });
  assert.deepEqual([resources.cpuQuota, resources.cpuPeriod, resources.cpuShares], [undefined, undefined, 512n]);
});

test("a container without limits gets the pod's", () => {
  const free = containerWith("c", { cpu: "100m" });
  const whole = podWith({
    containers: [free],
    resources: { limits: { cpu: 1, memory: "2Gi", "hugepages-1Gi": "1Gi" } },
  });
  const resources = resourcesOf(whole, free, settings);
  assert.deepEqual([resources.cpuShares, resources.cpuQuota], [102n, 100_000n]);
  assert.equal(resources.memoryLimitInBytes, 2n ** 31n);
  assert.equal(resources.hugepageLimits?.[2]?.limit, 2n ** 30n);
});

test("LimitedSwap gives burstable containers swap in proportion to their memory request", () => {
  const limited = {
    ...settings,
    cgroupVersion: 2,
    swapCapacityBytes: 4n << 30n,
    memoryCapacityBytes: 16n << 30n,
  } as const;
  const swapOf = (asking: Container, more: Partial<Pod["spec"]> = {}): string | undefined => {
    const swapping = podWith({ containers: [asking], ...more });
    return resourcesOf(swapping, asking, limited).unified?.["memory.swap.max"];
  };
  const burstable = containerWith("a", { memory: "2Gi" }, { memory: "4Gi" });
  assert.equal(swapOf(burstable), String(512 << 20));
  assert.equal(swapOf(burstable, { priority: 2_000_000_000 }), "0", "critical pods have none");
  assert.equal(swapOf(containerWith("a", { memory: "2Gi" }, { memory: "2Gi" })), "0", "request and limit are one");
  assert.equal(swapOf(containerWith("a", undefined)), "0", "best effort");
  assert.equal(swapOf(containerWith("a", { memory: "32Gi" })), "0", "more than there is");
  const v1 = resourcesOf(podWith({ containers: [burstable] }), burstable, { ...limited, cgroupVersion: 1 });
  assert.equal(v1.memorySwapLimitInBytes, 4n << 30n);
});

test("resizes that change a container's swap are detected", () => {
  const limited = { ...settings, cgroupVersion: 2, swapCapacityBytes: 4n << 30n } as const;
  const policy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  const of = (memory: string, cpu: string, more: Partial<Container> = {}): Pod =>
    podWith({ containers: [containerWith("a", { memory, cpu }, { memory: "4Gi" }, more)] });
  assert.equal(changesSwap(of("1Gi", "1"), of("2Gi", "1"), limited), true);
  assert.equal(changesSwap(of("1Gi", "1"), of("1Gi", "2"), limited), false);
  assert.equal(changesSwap(of("1Gi", "1", { resizePolicy: policy }), of("2Gi", "1"), limited), false);
  assert.equal(changesSwap(of("1Gi", "1"), of("2Gi", "1"), settings), false);
});
