import assert from "node:assert/strict";
import { test } from "node:test";
import { podWith } from "../../test/support/pods.ts";
import type { Pod } from "../api/pod.ts";
import { podsToPreempt, type Requirement } from "./preemption.ts";

type Amounts = Readonly<Record<string, string>>;

function pod(name: string, requests: Amounts = {}, limits: Amounts = {}, priority?: number): Pod {
  const resources = { requests: { ...requests }, limits: { ...limits } };
  const spec = { containers: [{ name: "c", resources }], ...(priority !== undefined && { priority }) };
  return podWith(spec, { name, uid: name });
}
const guaranteed = (name: string, cpu: string, memory: string): Pod => pod(name, { cpu, memory }, { cpu, memory });
const critical = pod("critical", {}, {}, 2_000_000_000);
const cpu = (amount: bigint): Requirement => ({ name: "cpu", amount });
const memory = (amount: bigint): Requirement => ({ name: "memory", amount });
const Mi = 1n << 20n;

function victims(others: readonly Pod[], ...requirements: readonly Requirement[]): string[] | undefined {
  return podsToPreempt(critical, others, requirements)?.map(({ metadata }) => metadata.name);
}

test("the pods closest to the missing amount are preempted, and as few as possible", () => {
  const others = [pod("small", { cpu: "100m" }), pod("fits", { cpu: "500m" }), pod("large", { cpu: "2" })];
  assert.deepEqual(victims(others, cpu(400n)), ["fits"]);
  assert.deepEqual(victims(others, cpu(100n)), ["small"]);
  assert.deepEqual(victims(others, cpu(600n)), ["large"]);
  assert.deepEqual(victims(others, cpu(2100n)), ["large", "small"]);
  assert.deepEqual(victims(others, cpu(2601n)), undefined);
});

test("higher QoS classes are preempted last, and no more of a lower one than necessary then", () => {
  const others = [pod("best"), pod("burst", { cpu: "300m", memory: "100Mi" }), guaranteed("sure", "1", "100Mi")];
  assert.deepEqual(victims(others, cpu(300n)), ["burst"]);
  assert.deepEqual(victims(others, cpu(900n)), ["sure"]);
  assert.deepEqual(victims(others, cpu(1200n)), ["burst", "sure"]);
  assert.deepEqual(victims(others, { name: "pods", amount: 1n }), ["best"]);
  assert.deepEqual(victims(others, memory(200n * Mi)), ["burst", "sure"]);
});

test("several resources count alike, and the smaller of two equally close pods is preempted", () => {
  const others = [
    pod("both", { cpu: "500m", memory: "500Mi" }),
    pod("cpu", { cpu: "1" }),
    pod("memory", { memory: "1Gi" }),
  ];
  assert.deepEqual(victims(others, cpu(500n), memory(500n * Mi)), ["both"]);
  assert.deepEqual(victims([pod("a", { cpu: "1", memory: "2Mi" }), pod("b", { cpu: "1", memory: "1Mi" })], cpu(1n)), [
    "b",
  ]);
});

test("critical pods stay, unless the new one has a higher priority", () => {
  const peer = pod("peer", { cpu: "1" }, {}, 2_000_000_000);
  const node = podWith(
    { containers: peer.spec.containers },
    { name: "s", annotations: { "kubernetes.io/config.source": "file" } },
  );
  assert.equal(victims([peer, node], cpu(1n)), undefined);
  const higher = { ...critical, spec: { ...critical.spec, priority: 2_000_001_000 } };
  assert.deepEqual(podsToPreempt(higher, [peer, node], [cpu(1n)]), [peer]);
});
