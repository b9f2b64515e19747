import assert from "node:assert/strict";
import { test } from "node:test";
import {
  capacityForPods,
  type NodeCapacity,
  nodeAllocatable,
  reservationProblems,
  type Reservations,
} from "./node-allocatable.ts";
import { parseQuantity } from "./quantity.ts";
import { kubepodsResources } from "./qos-resources.ts";

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

test("node allocatable is the capacity minus reservations, with huge pages subtracted from memory", () => {
  assert.deepEqual(nodeAllocatable(capacity, none), { cpu: "4", memory: "7Gi", "hugepages-2Mi": "1Gi" });
  assert.deepEqual(nodeAllocatable(capacity, some), { cpu: "2500m", memory: "5632Mi", "hugepages-2Mi": "1Gi" });
});

test("the cgroup of all pods is limited to unreserved resources, including huge pages and processes", () => {
  assert.deepEqual(kubepodsResources(capacityForPods(capacity, some)), {
    cpuShares: 2560,
    memoryLimitBytes: 13 * 2 ** 29,
    pidsLimit: 31_768,
    hugePageLimitBytes: { "2MB": 2 ** 30, "1GB": 0 },
  });
});

test("without enforcement its limits are the machine's capacity", () => {
  const all = capacityForPods(capacity, { ...some, enforced: false });
  const { cpuShares, memoryLimitBytes, pidsLimit } = kubepodsResources(all);
  assert.deepEqual([cpuShares, memoryLimitBytes, pidsLimit], [4096, 2 ** 33, 32_768]);
});

test("processors reserved by number replace those reserved by amount", () => {
  assert.equal(nodeAllocatable(capacity, { ...some, systemCpus: "0-1,3,3" })["cpu"], "1");
});

test("allocatable resources are never negative", () => {
  const all = nodeAllocatable(capacity, { ...none, lists: [{ cpu: "99", memory: "99Gi" }] });
  assert.deepEqual([all["cpu"], all["memory"]], ["0", "0"]);
});

test("hard eviction thresholds reduce node allocatable, but not the limits of the pods' cgroup", () => {
  const eviction = { memory: { amount: parseQuantity("1Gi") }, ephemeralStorage: { part: 0.5 } };
  const disk = { ...capacity, ephemeralStorageBytes: 100n << 30n };
  const storage = { lists: [{ "ephemeral-storage": "10Gi" }], systemCpus: "", enforced: true };
  const left = nodeAllocatable(disk, { ...storage, eviction });
  assert.deepEqual([left["memory"], left["ephemeral-storage"]], ["6Gi", "40Gi"]);
  assert.equal(nodeAllocatable(disk, storage)["ephemeral-storage"], "90Gi");
  assert.equal(nodeAllocatable(capacity, { ...storage, eviction })["ephemeral-storage"], undefined);
  assert.equal(capacityForPods(disk, { ...storage, eviction }).memoryBytes, 8n << 30n);
});

test("reservations cannot exceed the capacity", () => {
  const disk = { ...capacity, ephemeralStorageBytes: 10n << 30n };
  assert.deepEqual(reservationProblems(disk, { ...some, eviction: { ephemeralStorage: { part: 1 } } }), []);
  const much = { lists: [{ cpu: "5", memory: "8Gi", "ephemeral-storage": "6Gi" }], systemCpus: "", enforced: true };
  const eviction = { memory: { amount: parseQuantity("100Mi") }, ephemeralStorage: { part: 0.5 } };
  const problems = reservationProblems(disk, { ...much, eviction });
  assert.match(problems[1]?.fields ?? "", /^memory in kubeReserved and systemReserved, .*evictionHard$/u);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [
      'Resource "cpu" has a reservation of 5 but capacity of 4. Expected capacity >= reservation.',
      'Resource "memory" has a reservation of 8292Mi but capacity of 8Gi. Expected capacity >= reservation.',
      'Resource "ephemeral-storage" has a reservation of 11Gi but capacity of 10Gi. Expected capacity >= reservation.',
    ],
  );
});
