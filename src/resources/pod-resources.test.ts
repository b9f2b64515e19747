import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { recordedPods, vectorText } from "../../test/support/vectors.ts";
import { podCgroupResources } from "./pod-resources.ts";
import { qosClass } from "./qos.ts";

const settings = { cpuQuota: true, cpuPeriodMicroseconds: 100_000n, podPidsLimit: -1, hugePageSizes: [] };

/** Recorded values by path below /sys/fs/cgroup. */
const recorded = new Map(
  vectorText("cgroups-v1.txt")
    .split("\n")
    .map((line) => line.split(" ") as [string, string])
    .map(([path, value]) => [path, Number(value)]),
);

const pods = recordedPods();
const only = (qos: string) => {
  const pod = pods.find((each) => qosClass(each) === qos);
  assert.ok(pod);
  return podCgroupResources(pod, settings);
};

test("pods' cgroups have the Go kubelet's values", () => {
  const burstable = only("Burstable");
  assert.equal(burstable.cpuShares, recorded.get("cpu/kubepods/burstable/pod*/cpu.shares"));
  assert.equal(burstable.cpuQuotaMicroseconds, recorded.get("cpu/kubepods/burstable/pod*/cpu.cfs_quota_us"));
  assert.equal(burstable.memoryLimitBytes, recorded.get("memory/kubepods/burstable/pod*/memory.limit_in_bytes"));
  const guaranteed = only("Guaranteed");
  assert.equal(guaranteed.cpuShares, recorded.get("cpu/kubepods/pod*/cpu.shares"));
  assert.equal(guaranteed.cpuQuotaMicroseconds, recorded.get("cpu/kubepods/pod*/cpu.cfs_quota_us"));
  assert.equal(guaranteed.memoryLimitBytes, recorded.get("memory/kubepods/pod*/memory.limit_in_bytes"));
});

test("a best-effort pod has the minimum weight and no limits", () => {
  const pod = podWith({ containers: [containerWith("a", undefined)] });
  assert.deepEqual(podCgroupResources(pod, settings), { cpuShares: 2 });
  assert.deepEqual(podCgroupResources(pod, { ...settings, podPidsLimit: 100 }), { cpuShares: 2, pidsLimit: 100 });
});

test("a pod has no limit for a resource that one of its containers does not limit", () => {
  const pod = podWith({
    containers: [
      containerWith("a", { cpu: "100m" }, { cpu: "200m", memory: "1Gi" }),
      containerWith("b", undefined, { cpu: "1m" }),
    ],
  });
  const limits = { cpuQuotaMicroseconds: 20_100, cpuPeriodMicroseconds: 100_000 };
  assert.deepEqual(podCgroupResources(pod, settings), { cpuShares: 102, ...limits });
});

test("CPU limits are written as unlimited when they are not enforced", () => {
  const pod = podWith({ containers: [containerWith("a", { cpu: 1 }, { cpu: 2 })] });
  assert.equal(podCgroupResources(pod, { ...settings, cpuQuota: false }).cpuQuotaMicroseconds, -1);
});

test("a pod's cgroup has a limit for every huge page size: the sum of its containers' requests, or 0", () => {
  const pages = { ...settings, hugePageSizes: [2n ** 21n, 2n ** 30n] };
  const asking = containerWith("a", { cpu: "1", "hugepages-2Mi": "4Mi" }, { "hugepages-2Mi": "4Mi" });
  const pod = podWith({ containers: [asking, { ...asking, name: "b" }] });
  assert.deepEqual(podCgroupResources(pod, pages).hugePageLimitBytes, { "2MB": 2 ** 23, "1GB": 0 });
  const bestEffort = podWith({ containers: [containerWith("a", undefined)] });
  assert.deepEqual(podCgroupResources(bestEffort, pages).hugePageLimitBytes, { "2MB": 0, "1GB": 0 });
});
