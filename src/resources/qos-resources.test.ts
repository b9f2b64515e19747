import assert from "node:assert/strict";
import { test } from "node:test";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { recordedPods, vectorText } from "../../test/support/vectors.ts";
import { classRequests, kubepodsResources, qosResources } from "./qos-resources.ts";

/** Recorded values by path below /sys/fs/cgroup. */
const recorded = new Map(
  vectorText("cgroups-v1.txt")
    .split("\n")
    .map((line) => line.split(" ") as [string, string])
    .map(([path, value]) => [path, Number(value)]),
);

test("cgroups of the classes and of all pods have the Go kubelet's values", () => {
  const { burstable, bestEffort } = qosResources(classRequests(recordedPods()));
  assert.equal(burstable.cpuShares, recorded.get("cpu/kubepods/burstable/cpu.shares"));
  assert.equal(bestEffort.cpuShares, recorded.get("cpu/kubepods/besteffort/cpu.shares"));
  const all = kubepodsResources({ milliCpu: 2000n, memoryBytes: 25_276_514_304n });
  assert.equal(all.cpuShares, recorded.get("cpu/kubepods/cpu.shares"));
  assert.equal(all.memoryLimitBytes, recorded.get("memory/kubepods/memory.limit_in_bytes"));
});

const gi = 2 ** 30;
const memory = (request: string, limit = request) =>
  podWith({ containers: [containerWith("a", { cpu: "1", memory: request }, { cpu: "1", memory: limit })] });
const [guaranteed, burstable] = [memory("3Gi"), memory("1Gi", "2Gi")];
const bestEffort = podWith({ containers: [containerWith("a", undefined)] });
const requests = classRequests([guaranteed, burstable, bestEffort]);

test("TieredReservation protects all pods by the requests of the two better classes, and burstable ones by memory.low", () => {
  const memoryQos = { policy: "TieredReservation", throttlingFactor: 0.9 } as const;
  const { kubepods, burstable: own, bestEffort: none } = qosResources(requests, { memoryQos });
  assert.deepEqual(kubepods, { memoryMinBytes: 4 * gi });
  assert.deepEqual(own, { cpuShares: 1024, memoryLowBytes: gi });
  assert.deepEqual(none, { cpuShares: 2 });
});

test("policy None resets earlier protection, and without the gate nothing is written", () => {
  const memoryQos = { policy: "None", throttlingFactor: 0.9 } as const;
  assert.deepEqual(qosResources(requests, { memoryQos }).kubepods, { memoryMinBytes: 0 });
  assert.deepEqual(qosResources(requests, { memoryQos }).burstable, { cpuShares: 1024, memoryLowBytes: 0 });
  assert.deepEqual(qosResources(requests), {
    kubepods: {},
    burstable: { cpuShares: 1024 },
    bestEffort: { cpuShares: 2 },
  });
});

test("qosReserved withholds a part of better classes' requests from lower ones; limits are never negative", () => {
  const limits = (percent: number, allocatableBytes: bigint): unknown[] => {
    const classes = qosResources(requests, { reservedMemory: { percent, allocatableBytes } });
    return [classes.burstable.memoryLimitBytes, classes.bestEffort.memoryLimitBytes];
  };
  assert.deepEqual(limits(50, 8n << 30n), [6.5 * gi, 6 * gi]);
  assert.deepEqual(limits(100, 8n << 30n), [5 * gi, 4 * gi]);
  assert.deepEqual(limits(100, 2n << 30n), [0, 0]);
});
