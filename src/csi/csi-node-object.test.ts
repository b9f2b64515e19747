import assert from "node:assert/strict";
import { test } from "node:test";
import type { CsiNode } from "../api/csi-node.ts";
import {
  csiNodeStep,
  type DriverOnNode,
  movedProblem,
  nodePatch,
  topologyCollision,
  type WantedDrivers,
} from "./csi-node-object.ts";

const driver: DriverOnNode = {
  name: "hostpath.csi.k8s.io",
  nodeId: "id1",
  maxVolumes: 20n,
  topology: { "topology.hostpath.csi/node": "node1" },
};
const migrated =
  "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder," +
  "kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume";

function wanted(more: Partial<WantedDrivers> = {}): WantedDrivers {
  return { nodeName: "node1", nodeUid: "u1", installed: [], removed: new Set(), ...more };
}

function csiNode(drivers: CsiNode["spec"]["drivers"] = [], uid = "u1"): CsiNode {
  return {
    metadata: {
      name: "node1",
      resourceVersion: "5",
      annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated },
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node1", uid }],
    },
    spec: { drivers },
  };
}

const known = {
  name: driver.name,
  nodeID: "id1",
  topologyKeys: ["topology.hostpath.csi/node"],
  allocatable: { count: 20 },
};

test("a missing CSINode is created with its owner and the migrated plugins", () => {
  assert.deepEqual(csiNodeStep(undefined, wanted({ installed: [driver] })), {
    kind: "create",
    object: {
      apiVersion: "storage.k8s.io/v1",
      kind: "CSINode",
      metadata: {
        name: "node1",
        annotations: { "storage.alpha.kubernetes.io/migrated-plugins": migrated },
        ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node1", uid: "u1" }],
      },
      spec: { drivers: [known] },
    },
    isLast: true,
  });
});

test("the CSINode of an earlier Node of the name is deleted first", () => {
  assert.deepEqual(csiNodeStep(csiNode([known], "old"), wanted()), { kind: "delete" });
});

test("unregistered drivers stay, removed ones are dropped, and equal objects are not written", () => {
  const other = { name: "other", nodeID: "x", topologyKeys: null };
  assert.deepEqual(csiNodeStep(csiNode([known, other]), wanted({ installed: [driver] })), { kind: "keep" });
  const step = csiNodeStep(csiNode([known, other]), wanted({ removed: new Set([driver.name]) }));
  assert.equal(step.kind, "replace");
  assert.deepEqual("object" in step && (step.object as CsiNode).spec.drivers, [other]);
  assert.equal("object" in step && (step.object as CsiNode).metadata.resourceVersion, "5");
});

test("a changed count is written, and one beyond 32 bits is clamped", () => {
  for (const [maxVolumes, allocatable] of [
    [21n, { count: 21 }],
    [2n ** 40n, { count: 2 ** 31 - 1 }],
    [0n, undefined],
  ] as const) {
    const step = csiNodeStep(csiNode([known]), wanted({ installed: [{ ...driver, maxVolumes }] }));
    assert.equal(step.kind, "replace");
    const [written] = ("object" in step && (step.object as CsiNode).spec.drivers) || [];
    assert.deepEqual(written?.allocatable, allocatable);
  }
});

test("an entry with another node ID or other keys is removed first and added by the next step, as the API wants it", () => {
  const other = { name: "other", nodeID: "x", topologyKeys: null };
  for (const changed of [{ nodeId: "id2" }, { topology: { rack: "r1" } }]) {
    const desired = wanted({ installed: [{ ...driver, ...changed }] });
    const [first, second] = [csiNodeStep(csiNode([known, other]), desired), csiNodeStep(csiNode([other]), desired)];
    assert.ok(first.kind === "replace" && second.kind === "replace");
    assert.deepEqual([first.isLast, (first.object as CsiNode).spec.drivers], [false, [other]]);
    assert.deepEqual([second.isLast, (second.object as CsiNode).spec.drivers?.length], [true, 2]);
  }
});

test("a new count leaves the rest of an entry as it is, also the order of its keys", () => {
  const before = { name: driver.name, nodeID: "id1", topologyKeys: ["z", "a"], later: "field" };
  const topology = { a: "1", z: "2" };
  const step = csiNodeStep(csiNode([before]), wanted({ installed: [{ ...driver, topology, maxVolumes: 7n }] }));
  assert.ok(step.kind === "replace" && step.isLast);
  assert.deepEqual((step.object as CsiNode).spec.drivers, [{ ...before, allocatable: { count: 7 } }]);
});

test("only another place of a driver is more than another count", () => {
  assert.equal(
    movedProblem(driver, { ...driver, maxVolumes: 3n, topology: { "topology.hostpath.csi/node": "n2" } }),
    undefined,
  );
  assert.equal(
    movedProblem(driver, { ...driver, nodeId: "id2", topology: {} }),
    'CSI driver hostpath.csi.k8s.io registered with node ID "id1", topology keys [topology.hostpath.csi/node], and now ' +
      'answers node ID "id2", topology keys []',
  );
});

test("the Node gets the drivers' IDs in addition to existing ones, sorted, and the topology labels", () => {
  const node = { metadata: { name: "node1", annotations: { "csi.volume.kubernetes.io/nodeid": '{"zz":"1"}' } } };
  assert.deepEqual(nodePatch(node, wanted({ installed: [driver] })), {
    metadata: {
      annotations: { "csi.volume.kubernetes.io/nodeid": '{"hostpath.csi.k8s.io":"id1","zz":"1"}' },
      labels: { "topology.hostpath.csi/node": "node1" },
    },
  });
});

test("the annotation is removed with the last driver, and the labels stay", () => {
  const labels = { "topology.hostpath.csi/node": "node1" };
  const annotations = { "csi.volume.kubernetes.io/nodeid": '{"hostpath.csi.k8s.io":"id1"}' };
  const node = { metadata: { name: "node1", labels, annotations } };
  assert.deepEqual(nodePatch(node, wanted({ removed: new Set([driver.name]) })), {
    metadata: { annotations: { "csi.volume.kubernetes.io/nodeid": null } },
  });
  assert.equal(nodePatch(node, wanted({ installed: [driver] })), undefined);
});

test("a driver with a conflicting label is rejected in upstream's words", () => {
  const node = { metadata: { name: "node1", labels: { "topology.hostpath.csi/node": "other" } } };
  assert.equal(
    topologyCollision(node, driver),
    'detected topology value collision: driver reported "topology.hostpath.csi/node":"node1" but existing label is ' +
      '"topology.hostpath.csi/node":"other"',
  );
  assert.equal(topologyCollision({ metadata: { name: "node1" } }, driver), undefined);
});
