import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { vectorJson } from "../../test/support/vectors.ts";
import type { NodeObject } from "../api/node.ts";
import {
  newNode,
  type NodeIdentity,
  type NodeObservation,
  nodeStatus,
  nodeStatusPatch,
  reconcilePatch,
} from "./node-status.ts";

interface RecordedNode extends NodeObject {
  readonly status: NonNullable<NodeObject["status"]> & Readonly<Record<string, unknown>>;
}
const recorded = vectorJson<RecordedNode>("node.json");
const recordedAt = Date.UTC(2026, 10, 20, 19, 33, 52);

/** The machine on which the Go kubelet's Node was recorded. */
const identity: NodeIdentity = {
  name: "node1",
  addresses: ["192.0.2.2"],
  facts: {
    processors: 2,
    memoryBytes: 24_684_096n * 1024n,
    swapBytes: 0n,
    hugePages: [
      { sizeBytes: 2n << 20n, count: 0n },
      { sizeBytes: 1n << 30n, count: 0n },
    ],
    kernelVersion: "6.18.44-fc-v595",
    osImage: "Debian GNU/Linux 12 (bookworm)",
    machineId: "3d1219c7c4c5404aaa1f6d2a48adfda4",
    systemUuid: "3d1219c7c4c5404aaa1f6d2a48adfda4",
    bootId: "ddac721e-2b6f-44bf-9b6d-d5bd63a7fe7b",
  },
  architecture: "amd64",
  apiPort: 10_250,
  kubeletVersion: "v1.36.2",
  runtime: {
    name: "containerd",
    version: "2.1.9+unknown",
    handlers: ["", "runc"].map((name) => ({ name, recursiveReadOnlyMounts: true, userNamespaces: false })),
    supplementalGroupsPolicy: true,
  },
  capacity: { maxPods: 110, podsPerCore: 0, reserved: [], reservedSystemCpus: "", evictionMemory: "100Mi" },
};
const registration = { enabled: true, taints: [], labels: {}, providerId: "", controllerAttaches: true };
const well: NodeObservation = { now: recordedAt, problems: [], images: [] };

function foundNode(status: Readonly<Record<string, unknown>>): NodeObject {
  return { metadata: { name: "node1" }, status };
}

test("a node's status is what the Go kubelet wrote on the same machine", () => {
  const { images: _images, declaredFeatures: _features, conditions = [], ...rest } = recorded.status;
  const { images: _none, conditions: own, ...status } = nodeStatus(identity, well, []);
  assert.deepEqual(status, rest);
  assert.deepEqual(own, conditions);
});

test("a node is registered with its labels, taints and status", () => {
  const taint = { key: "k", effect: "NoSchedule" };
  const node = newNode(identity, well, {
    ...registration,
    taints: [taint],
    labels: { zone: "a" },
    providerId: "x://1",
  });
  assert.deepEqual(node["metadata"], {
    name: "node1",
    labels: { ...recorded.metadata.labels, zone: "a" },
    annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
  });
  assert.deepEqual(node["spec"], { taints: [taint], providerID: "x://1" });
});

describe("the Ready condition", () => {
  const ready = (observed: Partial<NodeObservation>, previous?: NodeObject): unknown => {
    const status = nodeStatus(identity, { ...well, ...observed }, previous?.status?.conditions);
    return (status["conditions"] as { type: string }[]).find(({ type }) => type === "Ready");
  };

  test("says all that is in the way, in upstream's form", () => {
    const one = ready({ problems: ["container runtime is down"] }) as { reason: string; message: string };
    assert.deepEqual([one.reason, one.message], ["KubeletNotReady", "container runtime is down"]);
    assert.equal((ready({ problems: ["a", "b"] }) as { message: string }).message, "[a, b]");
  });

  test("has its time from when it changed, and a heartbeat each time", () => {
    const later = recordedAt + 60_000;
    assert.deepEqual(ready({ now: later }, recorded), {
      type: "Ready",
      status: "True",
      reason: "KubeletReady",
      message: "kubelet is posting ready status",
      lastHeartbeatTime: "2026-11-20T19:34:52Z",
      lastTransitionTime: "2026-11-20T19:33:52Z",
    });
    const flipped = ready({ now: later, problems: ["x"] }, recorded) as { lastTransitionTime: string };
    assert.equal(flipped.lastTransitionTime, "2026-11-20T19:34:52Z");
  });
});

describe("the patch of a node's status", () => {
  const status = nodeStatus(identity, well, []);

  test("that only a heartbeat has passed is no news", () => {
    const later = nodeStatus(identity, { ...well, now: recordedAt + 10_000 }, foundNode(status).status?.conditions);
    const { patch, news } = nodeStatusPatch(foundNode(status), later);
    assert.equal(news, false);
    assert.notEqual(patch, undefined);
    assert.deepEqual(nodeStatusPatch(foundNode(status), status), { patch: undefined, news: false });
  });

  test("conditions and devices of others are left alone", () => {
    const foreign = { type: "NetworkUnavailable", status: "False" };
    const found = foundNode({
      ...status,
      conditions: [foreign, ...(status["conditions"] as object[])],
      capacity: { ...(status["capacity"] as object), "example.org/gpu": "2" },
    });
    assert.equal(nodeStatusPatch(found, status).patch, undefined);
  });

  test("addresses are replaced as a whole, since several may have one type", () => {
    const moved = nodeStatus({ ...identity, addresses: ["192.0.2.3", "2001:db8::3"] }, well, []);
    const { patch, news } = nodeStatusPatch(foundNode(status), moved);
    assert.ok(news);
    assert.deepEqual((patch as { status: { addresses: unknown } }).status.addresses, [
      { type: "InternalIP", address: "192.0.2.3" },
      { type: "InternalIP", address: "2001:db8::3" },
      { type: "Hostname", address: "node1" },
      { $patch: "replace" },
    ]);
  });
});

test("a Node that was there before gets the labels it lacks, and devices of an earlier life are gone", () => {
  assert.equal(reconcilePatch(recorded, identity, registration), undefined);
  const found: NodeObject = {
    metadata: { name: "node1", labels: { ...recorded.metadata.labels, "kubernetes.io/hostname": "old", mine: "x" } },
    status: { capacity: { cpu: "2", "example.org/gpu": "2" } },
  };
  assert.deepEqual(reconcilePatch(found, identity, { ...registration, labels: { zone: "a" } }), {
    metadata: {
      labels: { "kubernetes.io/hostname": "node1", zone: "a" },
      annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
    },
    status: { capacity: { "example.org/gpu": "0" }, allocatable: { "example.org/gpu": "0" } },
  });
});

test("pods may have what is not reserved", () => {
  const capacity = {
    maxPods: 110,
    podsPerCore: 10,
    reserved: [{ cpu: "100m", memory: "1Gi" }, { cpu: "150m" }],
    reservedSystemCpus: "",
    evictionMemory: "50%",
  };
  const facts = { ...identity.facts, memoryBytes: 8n << 30n, hugePages: [{ sizeBytes: 2n << 20n, count: 512n }] };
  const status = nodeStatus({ ...identity, facts, capacity }, well, []);
  assert.deepEqual(status["capacity"], { cpu: "2", memory: "8Gi", pods: "20", "hugepages-2Mi": "1Gi" });
  assert.deepEqual(status["allocatable"], { cpu: "1750m", memory: "2Gi", pods: "20", "hugepages-2Mi": "1Gi" });
});
