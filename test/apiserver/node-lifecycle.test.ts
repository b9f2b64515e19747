import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ApiObject, type Fields, itemsAt, textAt } from "./objects.ts";
import { TestApiServer } from "./server.ts";
import { nodeNamed } from "./testing.ts";

const taints = (node: ApiObject | undefined): string[] =>
  itemsAt(node, "spec.taints")
    .map((each) => textAt(each, "key"))
    .toSorted();
const readiness = (node: ApiObject | undefined): string =>
  textAt(
    itemsAt(node, "status.conditions").find(({ type }) => type === "Ready"),
    "status",
  );
const condition = (type: string, status: string): Fields => ({ status: { conditions: [{ type, status }] } });

describe("nodes", () => {
  it("get taints for their conditions, and keep other taints", async () => {
    await using server = await TestApiServer.start();
    const becomes = async (...wanted: string[]): Promise<unknown> =>
      server.admin.until("nodes", "node1", (node) => taints(node).join() === wanted.join());
    server.admin.create({ ...nodeNamed("node1"), spec: { taints: [{ key: "mine", effect: "NoExecute" }] } });
    await becomes("mine", "node.kubernetes.io/not-ready");
    server.admin.patch("nodes", "node1", condition("Ready", "True"), { subresource: "status" });
    await becomes("mine");
    server.admin.patch("nodes", "node1", condition("DiskPressure", "True"), { subresource: "status" });
    server.admin.patch("nodes", "node1", { spec: { unschedulable: true } });
    await becomes("mine", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/unschedulable");
  });
  it("become unknown when they are silent, and known again with the next heartbeat", async () => {
    await using server = await TestApiServer.start({ nodeSilenceMs: 150 });
    server.admin.create(nodeNamed("node1", { ready: true }));
    server.admin.create(nodeNamed("node2", { ready: true }));
    const lease = server.admin.create({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "node2", namespace: "kube-node-lease" },
      spec: { holderIdentity: "node2" },
    });
    const { resourceVersion: _old, ...metadata } = lease.metadata;
    const renewing = setInterval(() => {
      const renewTime = new Date().toISOString().replace("Z", "000Z");
      server.admin.patch("leases", "kube-node-lease/node2", { metadata, spec: { renewTime } });
    }, 20);
    try {
      const silent = await server.admin.until("nodes", "node1", (node) => readiness(node) === "Unknown");
      assert.equal(textAt(itemsAt(silent, "status.conditions")[0], "reason"), "NodeStatusUnknown");
      await server.admin.until("nodes", "node1", (node) => taints(node).includes("node.kubernetes.io/unreachable"));
      assert.equal(readiness(server.admin.get("nodes", "node2")), "True");
      const beat = { type: "Ready", status: "True", lastHeartbeatTime: new Date().toISOString() };
      server.admin.patch("nodes", "node1", { status: { conditions: [beat] } }, { subresource: "status" });
      await server.admin.until("nodes", "node1", (node) => readiness(node) === "True" && taints(node).length === 0);
    } finally {
      clearInterval(renewing);
    }
  });
});
