import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { identity, recorded, recordedAt, well } from "../../test/support/recorded-node.ts";
import type { NodeObject } from "../api/node.ts";
import {
  conditionEvents,
  type NodeIdentity,
  type NodeObservation,
  machineMetadata,
  nodeStatus,
  nodeStatusPatch,
} from "./node-status.ts";

const machine = machineMetadata(identity);

function foundNode(status: Readonly<Record<string, unknown>>): NodeObject {
  return { metadata: { name: "node1", labels: machine.labels }, status };
}

test("a node's status equals the Go kubelet's on the same machine", () => {
  const { images: _images, conditions = [], ...rest } = recorded.status;
  const { images: _none, conditions: own, ...status } = nodeStatus(identity, well);
  assert.deepEqual(status, rest);
  assert.deepEqual(own, conditions);
});

describe("the Ready condition", () => {
  const ready = (observed: Partial<NodeObservation>, previous?: NodeObject): unknown => {
    const status = nodeStatus(identity, { ...well, ...observed }, previous?.status);
    return (status["conditions"] as { type: string }[]).find(({ type }) => type === "Ready");
  };

  test("lists all problems in upstream's format", () => {
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

  test("that contains only a heartbeat is not a change", () => {
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

  test("an extended resource set by a user is allocatable until it is removed", () => {
    const given = { ...(status["capacity"] as object), "example.org/dongle": "4" };
    const { patch, news } = nodeStatusPatch(foundNode({ ...status, capacity: given }), status, machine);
    assert.deepEqual([patch, news], [{ status: { allocatable: { "example.org/dongle": "4" } } }, true]);
    const left = { ...(status["allocatable"] as object), "example.org/dongle": "4" };
    const { patch: taken } = nodeStatusPatch(foundNode({ ...status, allocatable: left }), status, machine);
    assert.deepEqual(taken, { status: { allocatable: { "example.org/dongle": null } } });
  });

  test("resources of other controllers stay, whatever their names are, and huge pages that are gone do not", () => {
    const amounts = { "kubernetes.io/batch-cpu": "1500", "node.kubernetes.io/slots": "7" };
    const pages = { "hugepages-16Gi": "32Gi" };
    const found = foundNode({
      ...status,
      capacity: { ...(status["capacity"] as object), ...amounts, ...pages },
      allocatable: { ...(status["allocatable"] as object), ...amounts, "kubernetes.io/mid-cpu": "3", ...pages },
    });
    const gone = { "hugepages-16Gi": null };
    assert.deepEqual(nodeStatusPatch(found, status, machine).patch, { status: { capacity: gone, allocatable: gone } });
  });

  test("the machine's labels are corrected with it", () => {
    const labels = { "kubernetes.io/arch": "s390x", mine: "x" };
    const found = { ...foundNode(status), metadata: { name: "node1", labels } };
    assert.deepEqual(nodeStatusPatch(found, status, machine), {
      patch: { metadata: { labels: { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" } } },
      news: true,
    });
  });

  test("the annotation for the cloud controller is corrected with it", () => {
    const hint = "alpha.kubernetes.io/provided-node-ip";
    const of = (annotations: Record<string, string>): NodeObject => {
      return { ...foundNode(status), metadata: { name: "node1", labels: machine.labels, annotations } };
    };
    const external = { ...identity, externalCloud: { nodeIps: ["192.0.2.2", "2001:db8::2"], saysAddresses: true } };
    const wanted = machineMetadata(external);
    const patch = { metadata: { annotations: { [hint]: "192.0.2.2,2001:db8::2" } } };
    assert.deepEqual(nodeStatusPatch(of({ other: "x" }), status, wanted), { patch, news: true });
    assert.deepEqual(nodeStatusPatch(of({ [hint]: "192.0.2.9" }), status, wanted).patch, patch);
    const none = { metadata: { annotations: { [hint]: null } } };
    assert.deepEqual(nodeStatusPatch(of({ [hint]: "192.0.2.9" }), status, machine).patch, none);
    const silent = machineMetadata({ ...identity, externalCloud: { nodeIps: [], saysAddresses: false } });
    assert.deepEqual(nodeStatusPatch(of({ [hint]: "192.0.2.9" }), status, silent).patch, none);
  });

  test("addresses stay while the machine has none", () => {
    const silent = { ...well, addresses: [] };
    assert.equal(nodeStatusPatch(foundNode(status), nodeStatus(identity, silent, status), machine).patch, undefined);
    assert.deepEqual(nodeStatus(identity, silent).addresses, [{ type: "Hostname", address: "node1" }]);
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

test("allocatable is the capacity minus reservations", () => {
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

  test("is reported in upstream's words", () => {
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

  test("sends an Event when it starts and ends, and when the node is new", () => {
    const node = (pressures: NodeObservation["pressures"], problems: readonly string[] = []): NodeObject =>
      foundNode(nodeStatus(identity, { ...well, pressures, problems }));
    const free = ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"];
    const ready = [...free, "NodeReady"];
    assert.deepEqual(conditionEvents(undefined, node([])), ready);
    assert.deepEqual(conditionEvents(undefined, node([], ["no runtime"])), free, "it was never anything else");
    assert.deepEqual(conditionEvents(foundNode({}), node([])), ready, "made by somebody else, who says nothing of it");
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
});

test("volumes in use include those of an earlier run, until its pods have reported theirs", () => {
  const earlier = { ...recorded.status, volumesInUse: ["b", "c"] };
  const inUse = (observed: Partial<NodeObservation>): unknown =>
    nodeStatus(identity, { ...well, ...observed }, earlier)["volumesInUse"];
  assert.deepEqual(inUse({ volumesInUse: ["a", "b"], keepsVolumesInUse: true }), ["a", "b", "c"]);
  assert.deepEqual(inUse({ volumesInUse: ["a", "b"], keepsVolumesInUse: false }), ["a", "b"]);
  assert.deepEqual(inUse({ volumesInUse: [] }), []);
});
