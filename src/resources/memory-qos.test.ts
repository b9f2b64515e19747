import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "../api/pod.ts";
import { containerWith, podWith } from "../../test/support/pods.ts";
import { containerMemoryQos, type NodeMemoryQos, podMemoryProtection } from "./memory-qos.ts";

const mi = 2 ** 20;
const usual = { throttlingFactor: 0.9, allocatableBytes: 1000n << 20n, pageBytes: 4096 } as const;
const tiered = { ...usual, policy: "TieredReservation" } as const;
const none = { ...tiered, policy: "None" } as const;

function pod(request: string | undefined, limit?: string, cpu?: string): Pod {
  const list = (memory: string | undefined) =>
    memory === undefined ? undefined : { memory, ...(cpu !== undefined && { cpu }) };
  return podWith({ containers: [containerWith("a", list(request), list(limit))] });
}

function values(of: Pod, qos: NodeMemoryQos): (string | undefined)[] {
  const [container] = of.spec.containers;
  assert.ok(container);
  const unified = containerMemoryQos(of, container, qos);
  return ["memory.min", "memory.low", "memory.high"].map((key) => unified[key]);
}

test("a burstable container is throttled at 90 % between its request and its limit, in whole pages", () => {
  assert.deepEqual(values(pod("100Mi", "200Mi"), none), ["0", "0", String(190 * mi)]);
  assert.deepEqual(values(pod("100001", "200001"), none), ["0", "0", String(46 * 4096)]);
  assert.deepEqual(values(pod("100001", "200001"), { ...none, pageBytes: 65_536 }), ["0", "0", String(2 * 65_536)]);
});

test("node allocatable replaces a missing limit, and a request equal to the limit is not throttled", () => {
  assert.deepEqual(values(pod("100Mi"), none), ["0", "0", String(910 * mi)]);
  assert.deepEqual(values(pod("100Mi", "100Mi"), none), ["0", "0", "max"]);
  assert.deepEqual(values(pod(undefined), none), ["0", "0", "max"]);
  assert.deepEqual(values(pod("2000Mi"), none), ["0", "0", "max"], "it asks for more than there is");
});

test("only TieredReservation protects requests: guaranteed pods' always, burstable pods' as long as possible", () => {
  assert.deepEqual(values(pod("100Mi", "100Mi", "1"), tiered), [String(100 * mi), "0", "max"]);
  assert.deepEqual(values(pod("100Mi", "200Mi"), tiered), ["0", String(100 * mi), String(190 * mi)]);
  assert.deepEqual(podMemoryProtection(pod("100Mi", "100Mi", "1"), tiered), {
    memoryMinBytes: 100 * mi,
    memoryLowBytes: 0,
  });
  assert.deepEqual(podMemoryProtection(pod("100Mi", "200Mi"), tiered), { memoryMinBytes: 0, memoryLowBytes: 100 * mi });
  assert.deepEqual(podMemoryProtection(pod("100Mi", "200Mi"), none), { memoryMinBytes: 0, memoryLowBytes: 0 });
});

test("a pod's protection includes its overhead", () => {
  const { metadata, spec } = pod("100Mi");
  const heavy = { metadata, spec: { ...spec, overhead: { memory: "20Mi" } } };
  assert.equal(podMemoryProtection(heavy, tiered).memoryLowBytes, 120 * mi);
});
