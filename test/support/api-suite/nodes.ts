import { type Fields, fieldsAt, textAt } from "../../apiserver/objects.ts";
import { json, merge, type Steps, strategic } from "./scene.ts";

const nodes = "/api/v1/nodes";

function node(name: string, labels: Fields = {}): Fields {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/os": "linux",
        ...labels,
      },
    },
    spec: {},
    status: {
      capacity: { cpu: "2", memory: "4Gi", pods: "110" },
      allocatable: { cpu: "2", memory: "4Gi", pods: "110" },
      addresses: [
        { type: "InternalIP", address: "192.0.2.1" },
        { type: "Hostname", address: name },
      ],
      conditions: [condition("MemoryPressure", "False"), condition("Ready", "False")],
      daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
      nodeInfo: {
        ...{ machineID: "m", systemUUID: "s", bootID: "b", kernelVersion: "6", osImage: "Linux" },
        ...{ containerRuntimeVersion: "containerd://2", kubeletVersion: "v1.36.2", kubeProxyVersion: "" },
        ...{ operatingSystem: "linux", architecture: "amd64" },
      },
    },
  };
}

function condition(type: string, status: string, heartbeat = "2026-01-02T03:04:05Z"): Fields {
  return {
    ...{ type, status, lastHeartbeatTime: heartbeat, lastTransitionTime: "2026-01-02T03:04:05Z" },
    ...{ reason: "R", message: "m" },
  };
}

/** The part of a Node that its kubelet writes, without what controllers do to a silent node. */
function written(body: Fields): Fields {
  return { metadata: { ...fieldsAt(body, "metadata"), annotations: null }, status: fieldsAt(body, "status") };
}

async function registers({ step }: Steps): Promise<void> {
  await step("a node registers", "node1", `POST ${nodes}`, node("node1"), { view: written });
  await step("a node registers twice", "node1", `POST ${nodes}`, node("node1"));
  await step("a node registers another", "node1", `POST ${nodes}`, node("node3"));
  const restricted = node("node2", {
    "node-restriction.kubernetes.io/x": "1",
    "node-role.kubernetes.io/control-plane": "",
  });
  await step("a node registers with forbidden labels", "node2", `POST ${nodes}`, restricted);
  const allowed = node("node2", { "kubelet.kubernetes.io/x": "1", "node.kubernetes.io/y": "2", "example.com/z": "3" });
  await step("a node registers with labels", "node2", `POST ${nodes}`, allowed, { view: written });
  await step("a node reads itself", "node1", `GET ${nodes}/node1`, undefined, { view: written });
  await step("a node reads another", "node1", `GET ${nodes}/node2`);
  await step("a node reads one that is not there", "admin", `GET ${nodes}/none`);
  await step("a node lists all nodes", "node1", `GET ${nodes}`);
  const itself = `GET ${nodes}?fieldSelector=metadata.name%3Dnode1&limit=500&resourceVersion=0`;
  await step("a node lists itself", "node1", itself, undefined, {
    view: ({ kind, apiVersion, items }) => ({ kind, apiVersion, count: (items as readonly Fields[]).length }),
  });
  await step("a joiner reads a node", "joiner", `GET ${nodes}/node1`);
  await step("nobody lists nodes", "nobody", `GET ${nodes}`);
  await step("a node deletes itself", "node1", `DELETE ${nodes}/node1`);
}

async function patches({ step, ask }: Steps): Promise<void> {
  const status = `PATCH ${nodes}/node1/status`;
  const beat = {
    status: {
      "$setElementOrder/conditions": [{ type: "MemoryPressure" }, { type: "DiskPressure" }, { type: "Ready" }],
      conditions: [condition("DiskPressure", "False"), condition("Ready", "True", "2026-01-02T03:05:05Z")],
      images: [{ names: ["a:1"], sizeBytes: 5 }],
      "$setElementOrder/addresses": [{ type: "Hostname" }, { type: "InternalIP" }],
      addresses: [{ type: "InternalIP", address: "192.0.2.9" }],
    },
  };
  const unsorted = { status: { ...beat.status, conditions: beat.status.conditions.toReversed() } };
  await step("a node's status is patched in another order than it says", "node1", status, unsorted, {
    type: strategic,
  });
  await step("a node's status is patched", "node1", status, beat, { type: strategic, view: written });
  const less = { status: { conditions: [{ $patch: "delete", type: "DiskPressure" }], images: null } };
  await step("a condition of a node is taken out", "node1", status, less, { type: strategic, view: written });
  const sneaky = {
    metadata: { labels: { "example.com/s": "1" } },
    spec: { unschedulable: true, podCIDR: "10.0.0.0/24" },
  };
  await step("a status patch changes the spec of a node", "node1", status, sneaky, {
    type: strategic,
    view: (body) => ({
      metadata: fieldsAt(body, "metadata.labels"),
      spec: Object.keys(fieldsAt(body, "spec")).includes("unschedulable"),
    }),
  });
  const whole = `PATCH ${nodes}/node1`;
  const view = (body: Fields): Fields => ({
    labels: fieldsAt(body, "metadata.labels"),
    note: fieldsAt(body, "metadata.annotations")["example.com/n"] ?? null,
  });
  const own = { metadata: { labels: { "topology.kubernetes.io/zone": "a" }, annotations: { "example.com/n": "1" } } };
  await step("a node labels itself", "node1", whole, own, { type: merge, view });
  await step(
    "a node takes a label off",
    "node1",
    whole,
    { metadata: { labels: { "topology.kubernetes.io/zone": null } } },
    { type: strategic, view },
  );
  await step(
    "a node gives itself a role",
    "node1",
    whole,
    { metadata: { labels: { "node-role.kubernetes.io/x": "" } } },
    { type: strategic },
  );
  await step(
    "a node taints itself",
    "node1",
    whole,
    { spec: { taints: [{ key: "k", effect: "NoSchedule" }] } },
    { type: strategic },
  );
  await step("a node labels another", "node1", `PATCH ${nodes}/node2`, own, { type: strategic });
  await step("a node patches another's status", "node1", `PATCH ${nodes}/node2/status`, less, { type: strategic });
  const test = [{ op: "test", path: "/metadata/name", value: "other" }];
  await step("a JSON patch whose test fails", "admin", whole, test, { type: json });
  await step("a JSON patch of what is not there", "admin", whole, [{ op: "remove", path: "/metadata/none" }], {
    type: json,
  });
  const add = [{ op: "add", path: "/metadata/labels/example.com~1j", value: "1" }];
  await step("a JSON patch", "admin", whole, add, { type: json, view });
  await step("a patch of an unknown type", "admin", whole, own, { type: "application/json" });
  await step("a patch of another name", "admin", whole, { metadata: { name: "other" } }, { type: merge });
  await step("a patch of another UID", "admin", whole, { metadata: { uid: "other" } }, { type: merge });
  await step("a patch of an old revision", "admin", whole, { metadata: { resourceVersion: "1" } }, { type: merge });
  const { body } = await ask("node1", `GET ${nodes}/node1`);
  const stale = { ...body, metadata: { ...fieldsAt(body, "metadata"), resourceVersion: "1" } };
  await step("a node replaces itself from an old revision", "node1", `PUT ${nodes}/node1`, stale);
  await step("a node is replaced under another name", "admin", `PUT ${nodes}/node1`, {
    ...body,
    metadata: { name: "other" },
  });
  const wrong = { ...node("node1"), metadata: { name: "node1", uid: "wrong" } };
  await step("a node is replaced under another UID", "admin", `PUT ${nodes}/node1`, wrong);
  const bad = { status: { conditions: "no list" } };
  await step("a node's status is patched with another type", "node1", status, bad, { type: strategic });
  const unknown = { status: { nodeInfo: { color: "red" } } };
  await step("a node's status is patched with an unknown field", "node1", status, unknown, {
    type: strategic,
    view: () => null,
  });
}

async function leases({ step, ask }: Steps): Promise<void> {
  const path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  const { body: self } = await ask("node1", `GET ${nodes}/node1`);
  const lease = (name: string, spec: Fields = {}): Fields => ({
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: {
      name,
      namespace: "kube-node-lease",
      ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "node1", uid: textAt(self, "metadata.uid") }],
    },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: "2026-01-02T03:04:05.000006Z", ...spec },
  });
  await step("no lease yet", "node1", `GET ${path}/node1`);
  await step("a node makes its lease", "node1", `POST ${path}`, lease("node1"));
  await step("a node makes its lease twice", "node1", `POST ${path}`, lease("node1"));
  await step("a node makes another's lease", "node1", `POST ${path}`, lease("node2"));
  await step("a node lists leases", "node1", `GET ${path}`);
  const { body: now } = await ask("node1", `GET ${path}/node1`);
  const renewed = { ...now, spec: { ...fieldsAt(now, "spec"), renewTime: "2026-01-02T03:05:05.000006Z" } };
  await step("a lease is renewed", "node1", `PUT ${path}/node1`, renewed);
  await step("a lease is renewed from an old revision", "node1", `PUT ${path}/node1`, renewed);
  await step("a lease is renewed without a revision", "node1", `PUT ${path}/node1`, lease("node1"));
  await step("a node renews another's lease", "node2", `PUT ${path}/node1`, renewed);
  await step("a lease without seconds", "admin", `POST ${path}`, lease("zero", { leaseDurationSeconds: 0 }));
  await step("a lease with a bad time", "admin", `POST ${path}`, lease("time", { renewTime: "yesterday" }));
  await step("a lease elsewhere", "node1", "POST /apis/coordination.k8s.io/v1/namespaces/default/leases", {
    ...lease("node1"),
    metadata: { name: "node1" },
  });
}

export async function playNodes(steps: Steps): Promise<void> {
  await registers(steps);
  await patches(steps);
  await leases(steps);
}
