import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { vectorJson } from "../../test/support/vectors.ts";
import type { NodeObject } from "../api/node.ts";
import {
  cloudPatch,
  conditionEvents,
  newNode,
  type NodeIdentity,
  type NodeObservation,
  machineLabels,
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
  capacity: {
    maxPods: 110,
    podsPerCore: 0,
    reserved: [],
    reservedSystemCpus: "",
    eviction: { memory: { amount: 100n << 20n } },
  },
};
const runtime = {
  name: "containerd",
  version: "2.1.9+unknown",
  handlers: ["", "runc"].map((name) => ({ name, recursiveReadOnlyMounts: true, userNamespaces: false })),
  supplementalGroupsPolicy: true,
};
const registration = { enabled: true, taints: [], labels: {}, providerId: "", controllerAttaches: true };
const well: NodeObservation = { now: recordedAt, addresses: ["192.0.2.2"], runtime, problems: [], images: [] };

const machine = machineLabels(identity);

function foundNode(status: Readonly<Record<string, unknown>>): NodeObject {
  return { metadata: { name: "node1", labels: machine }, status };
}

test("a node's status is what the Go kubelet wrote on the same machine", () => {
  const { images: _images, declaredFeatures: features, conditions = [], ...rest } = recorded.status;
  const { images: _none, conditions: own, declaredFeatures, ...status } = nodeStatus(identity, well);
  assert.deepEqual(status, rest);
  const names = declaredFeatures as readonly string[];
  assert.ok(
    names.every((name) => (features as readonly string[]).includes(name)),
    "it declares nothing of its own",
  );
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
    const status = nodeStatus(identity, { ...well, ...observed }, previous?.status);
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
  const status = nodeStatus(identity, well);

  test("that only a heartbeat has passed is no news", () => {
    const later = nodeStatus(identity, { ...well, now: recordedAt + 10_000 }, foundNode(status).status);
    const { patch, news } = nodeStatusPatch(foundNode(status), later, machine);
    assert.equal(news, false);
    assert.notEqual(patch, undefined);
    assert.deepEqual(nodeStatusPatch(foundNode(status), status, machine), { patch: undefined, news: false });
  });

  test("conditions and devices of others are left alone", () => {
    const foreign = { type: "NetworkUnavailable", status: "False" };
    const found = foundNode({
      ...status,
      conditions: [foreign, ...(status["conditions"] as object[])],
      capacity: { ...(status["capacity"] as object), "example.org/gpu": "2" },
      allocatable: { ...(status["allocatable"] as object), "example.org/gpu": "2" },
    });
    assert.equal(nodeStatusPatch(found, status, machine).patch, undefined);
  });

  test("what somebody gives the node of an extended resource is for pods, and is not when it is taken away", () => {
    const given = { ...(status["capacity"] as object), "example.org/dongle": "4" };
    const { patch, news } = nodeStatusPatch(foundNode({ ...status, capacity: given }), status, machine);
    assert.deepEqual([patch, news], [{ status: { allocatable: { "example.org/dongle": "4" } } }, true]);
    const left = { ...(status["allocatable"] as object), "example.org/dongle": "4" };
    const { patch: taken } = nodeStatusPatch(foundNode({ ...status, allocatable: left }), status, machine);
    assert.deepEqual(taken, { status: { allocatable: { "example.org/dongle": null } } });
  });

  test("labels that say what the machine is are put right with it", () => {
    const labels = { "kubernetes.io/arch": "s390x", mine: "x" };
    const found = { ...foundNode(status), metadata: { name: "node1", labels } };
    assert.deepEqual(nodeStatusPatch(found, status, machine), {
      patch: { metadata: { labels: { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" } } },
      news: true,
    });
  });

  test("addresses are replaced as a whole, since several may have one type", () => {
    const moved = nodeStatus(identity, { ...well, addresses: ["192.0.2.3", "2001:db8::3"] });
    const { patch, news } = nodeStatusPatch(foundNode(status), moved, machine);
    assert.ok(news);
    assert.deepEqual((patch as { status: { addresses: unknown } }).status.addresses, [
      { type: "InternalIP", address: "192.0.2.3" },
      { type: "InternalIP", address: "2001:db8::3" },
      { type: "Hostname", address: "node1" },
      { $patch: "replace" },
    ]);
  });
});

test("a Node that was there before gets the labels of its machine again, and devices of an earlier life are gone", () => {
  assert.equal(reconcilePatch(recorded, identity, registration), undefined);
  const found: NodeObject = {
    metadata: { name: "node1", labels: { ...recorded.metadata.labels, "kubernetes.io/hostname": "old", mine: "x" } },
    status: { capacity: { cpu: "2", "example.org/gpu": "2" } },
  };
  assert.deepEqual(
    reconcilePatch(found, identity, {
      ...registration,
      labels: { "topology.kubernetes.io/zone": "a", mine: "y", new: "z" },
    }),
    {
      metadata: {
        labels: { "kubernetes.io/hostname": "node1", "topology.kubernetes.io/zone": "a" },
        annotations: { "volumes.kubernetes.io/controller-managed-attach-detach": "true" },
      },
      status: { capacity: { "example.org/gpu": "0" }, allocatable: { "example.org/gpu": "0" } },
    },
  );
});

test("pods may have what is not reserved", () => {
  const capacity = {
    maxPods: 110,
    podsPerCore: 10,
    reserved: [{ cpu: "100m", memory: "1Gi", "ephemeral-storage": "10Gi" }, { cpu: "150m" }],
    reservedSystemCpus: "",
    eviction: { memory: { part: 0.5 }, ephemeralStorage: { part: 0.25 } },
  };
  const hugePages = [{ sizeBytes: 2n << 20n, count: 512n }];
  const facts = { ...identity.facts, memoryBytes: 8n << 30n, hugePages, ephemeralStorageBytes: 100n << 30n };
  const status = nodeStatus({ ...identity, facts, capacity }, well);
  const storage = (amount: string) => ({ "ephemeral-storage": amount, "hugepages-2Mi": "1Gi" });
  assert.deepEqual(status["capacity"], { cpu: "2", memory: "8Gi", pods: "20", ...storage("100Gi") });
  assert.deepEqual(status["allocatable"], { cpu: "1750m", memory: "2Gi", pods: "20", ...storage("65Gi") });
});

describe("pressure", () => {
  const condition = (type: string, pressures: NodeObservation["pressures"]): unknown[] => {
    const { conditions = [] } = nodeStatus(identity, { ...well, pressures }) as NodeObject["status"] & object;
    const { status, reason, message } = conditions.find((each) => each.type === type) ?? { status: "" };
    return [status, reason, message];
  };

  test("is told in upstream's words", () => {
    const said: readonly (readonly [type: "MemoryPressure" | "DiskPressure" | "PIDPressure", words: string[]])[] = [
      ["MemoryPressure", ["True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"]],
      ["DiskPressure", ["True", "KubeletHasDiskPressure", "kubelet has disk pressure"]],
      ["PIDPressure", ["True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"]],
    ];
    for (const [type, words] of said) {
      assert.deepEqual(condition(type, [type]), words);
      assert.equal(condition(type, [])[0], "False");
    }
  });

  test("is an event when it begins and ends, and when the node is new", () => {
    const node = (pressures: NodeObservation["pressures"], problems: readonly string[] = []): NodeObject =>
      foundNode(nodeStatus(identity, { ...well, pressures, problems }));
    const free = ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"];
    assert.deepEqual(conditionEvents(undefined, node([])), free);
    assert.deepEqual(conditionEvents(foundNode({}), node([])), free, "made by somebody else, who says nothing of it");
    assert.deepEqual(conditionEvents(node([]), node([])), []);
    assert.deepEqual(conditionEvents(node(["DiskPressure"]), node(["MemoryPressure"])), [
      "NodeHasInsufficientMemory",
      "NodeHasNoDiskPressure",
    ]);
    assert.deepEqual(conditionEvents(node([]), node(["PIDPressure"], ["no runtime"])), [
      "NodeHasInsufficientPID",
      "NodeNotReady",
    ]);
  });
});

describe("a node of a cloud", () => {
  const external = { ...identity, externalCloud: { nodeIps: ["192.0.2.2", "2001:db8::2"], saysAddresses: true } };
  const hint = { "alpha.kubernetes.io/provided-node-ip": "192.0.2.2,2001:db8::2" };

  test("whose controller knows it keeps pods away until that has seen it, and says which address it was given", () => {
    const node = newNode(external, well, { ...registration, taints: [{ key: "k", effect: "NoSchedule" }] });
    assert.deepEqual(node["spec"], {
      taints: [
        { key: "k", effect: "NoSchedule" },
        { key: "node.cloudprovider.kubernetes.io/uninitialized", value: "true", effect: "NoSchedule" },
      ],
    });
    const { annotations } = node["metadata"] as { annotations: Record<string, string> };
    assert.deepEqual(annotations, { "volumes.kubernetes.io/controller-managed-attach-detach": "true", ...hint });
  });

  test("has the addresses that its controller wrote; until then those of --node-ip, or its name alone", () => {
    const addresses = (of: NodeIdentity, written?: readonly { type: string; address: string }[]): unknown =>
      nodeStatus(of, well, { addresses: written })["addresses"];
    const own = [
      { type: "InternalIP", address: "192.0.2.2" },
      { type: "Hostname", address: "node1" },
    ];
    const written = [{ type: "ExternalIP", address: "198.51.100.1" }];
    assert.deepEqual(addresses(external), own);
    assert.deepEqual(addresses(external, written), written);
    const silent = { ...identity, externalCloud: { nodeIps: [], saysAddresses: false } };
    assert.deepEqual(addresses(silent), [{ type: "Hostname", address: "node1" }]);
    assert.deepEqual(addresses(identity, written), own, "without a cloud nobody else knows them");
  });

  test("loses the hint of an earlier life that had --node-ip", () => {
    const { labels, annotations } = recorded.metadata;
    const found = { metadata: { name: "node1", labels, annotations: { ...annotations, ...hint } } };
    const patch = { metadata: { annotations: { "alpha.kubernetes.io/provided-node-ip": null } } };
    assert.deepEqual(reconcilePatch(found, identity, registration), patch);
    assert.equal(reconcilePatch(found, external, registration), undefined);
  });

  const cloud = {
    providerId: "aws:///z/i-1",
    labels: { "topology.kubernetes.io/zone": "z" },
    addresses: [
      { type: "InternalIP", address: "10.0.0.1" },
      { type: "Hostname", address: "ip-10-0-0-1" },
    ] as const,
  };

  test("that tells of it is believed: its id, labels and addresses, under the node's own name", () => {
    const node = newNode(identity, { ...well, cloud }, { ...registration, labels: { zone: "a" } });
    assert.deepEqual(node["spec"], { providerID: "aws:///z/i-1" });
    const { labels } = node["metadata"] as { labels: Record<string, string> };
    assert.deepEqual([labels["topology.kubernetes.io/zone"], labels["zone"]], ["z", "a"]);
    assert.deepEqual((node["status"] as Record<string, unknown>)["addresses"], [
      { type: "InternalIP", address: "10.0.0.1" },
      { type: "Hostname", address: "node1" },
    ]);
  });

  test("that answers late is heard then; an id that the Node has stays, and so do labels of --node-labels", () => {
    const found: NodeObject = { metadata: { name: "node1", labels: { a: "b" } } };
    const given = { labels: {} };
    assert.deepEqual(cloudPatch(found, cloud, given), {
      metadata: { labels: cloud.labels },
      spec: { providerID: cloud.providerId },
    });
    const known = { ...found, spec: { providerID: "other://" } };
    assert.deepEqual(cloudPatch(known, cloud, given), { metadata: { labels: cloud.labels } });
    const labelled = { ...known, metadata: { name: "node1", labels: { "topology.kubernetes.io/zone": "mine" } } };
    assert.equal(cloudPatch(labelled, cloud, { labels: { "topology.kubernetes.io/zone": "mine" } }), undefined);
    assert.equal(cloudPatch(found, undefined, given), undefined);
  });
});
