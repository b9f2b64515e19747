import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { identity, recorded, registration, well } from "../../test/support/recorded-node.ts";
import type { NodeObject } from "../api/node.ts";
import { cloudPatch, newNode, reconcilePatch } from "./node-registration.ts";

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

test("an existing Node gets its machine's labels again, and loses the devices of an earlier machine", () => {
  assert.equal(reconcilePatch(recorded, identity, { ...registration, staleResources: "all" }), undefined);
  const found: NodeObject = {
    metadata: { name: "node1", labels: { ...recorded.metadata.labels, "kubernetes.io/hostname": "old", mine: "x" } },
    status: { capacity: { cpu: "2", "example.org/gpu": "2" } },
  };
  assert.deepEqual(
    reconcilePatch(found, identity, {
      ...registration,
      labels: { "topology.kubernetes.io/zone": "a", mine: "y", new: "z" },
      staleResources: "all",
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

test("a restart keeps extended resources set by users, but not those of device plugins", () => {
  const capacity = { cpu: "2", "example.org/dongle": "4", "example.org/gpu": "2", "example.org/old": "0" };
  const found: NodeObject = { ...recorded, status: { capacity } };
  assert.equal(reconcilePatch(found, identity, registration), undefined);
  const staleResources = ["example.org/gpu", "example.org/old", "cpu"];
  const none = { "example.org/gpu": "0" };
  const patch = { status: { capacity: none, allocatable: none } };
  assert.deepEqual(reconcilePatch(found, identity, { ...registration, staleResources }), patch);
});

describe("a node of a cloud", () => {
  const external = { ...identity, externalCloud: { nodeIps: ["192.0.2.2", "2001:db8::2"], saysAddresses: true } };
  const hint = { "alpha.kubernetes.io/provided-node-ip": "192.0.2.2,2001:db8::2" };

  test("with an external controller rejects pods until that has seen it, and reports its given address", () => {
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

  test("loses the hint of an earlier run with --node-ip", () => {
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

  test("that provides metadata sets its ID, labels and addresses, under the node's own name", () => {
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
