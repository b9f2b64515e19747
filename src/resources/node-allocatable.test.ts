import assert from "node:assert/strict";
import { test } from "node:test";
import { capacityForPods, type NodeCapacity, nodeAllocatable, type Reservations } from "./node-allocatable.ts";
import { kubepodsResources } from "./pod-resources.ts";

const capacity: NodeCapacity = {
  milliCpu: 4000n,
  memoryBytes: 8n << 30n,
  pids: 32_768n,
  hugePages: new Map([
    [2n << 20n, 1n << 30n],
    [1n << 30n, 0n],
  ]),
};
const none: Reservations = { lists: [], systemCpus: "", enforced: true };
const some: Reservations = {
  lists: [
    { cpu: "500m", memory: "1Gi", pid: "1000" },
    { cpu: "1", memory: "512Mi" },
  ],
  systemCpus: "",
  enforced: true,
};

test("pods may ask for what is not reserved, and for no memory that huge pages take", () => {
  assert.deepEqual(nodeAllocatable(capacity, none), { cpu: "4", memory: "7Gi", "hugepages-2Mi": "1Gi" });
  assert.deepEqual(nodeAllocatable(capacity, some), { cpu: "2500m", memory: "5632Mi", "hugepages-2Mi": "1Gi" });
});

test("the cgroup of all pods is held to what is not reserved, huge pages and processes included", () => {
  assert.deepEqual(kubepodsResources(capacityForPods(capacity, some)), {
    cpuShares: 2560,
    memoryLimitBytes: 13 * 2 ** 29,
    pidsLimit: 31_768,
    hugePageLimitBytes: { "2MB": 2 ** 30, "1GB": 0 },
  });
});

test("without enforcement it may have all that the machine has", () => {
  const all = capacityForPods(capacity, { ...some, enforced: false });
  const { cpuShares, memoryLimitBytes, pidsLimit } = kubepodsResources(all);
  assert.deepEqual([cpuShares, memoryLimitBytes, pidsLimit], [4096, 2 ** 33, 32_768]);
});

test("processors reserved by number take the place of those reserved by amount", () => {
  assert.equal(nodeAllocatable(capacity, { ...some, systemCpus: "0-1,3,3" })["cpu"], "1");
});

test("nothing is less than zero", () => {
  const all = nodeAllocatable(capacity, { ...none, lists: [{ cpu: "99", memory: "99Gi" }] });
  assert.deepEqual([all["cpu"], all["memory"]], ["0", "0"]);
});
