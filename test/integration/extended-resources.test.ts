import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeObject } from "../../src/api/node.ts";
import { withClusterNode } from "../support/cluster-node.ts";
import { until } from "../support/podwright.ts";

test("extended resources that others gave a node survive a restart and are reported at once", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { admin } = cluster.server;
    const node = (): NodeObject => admin.get("nodes", "node1");
    await cluster.nodeReady();
    const given = { status: { capacity: { "example.org/dongle": "4" } } };
    admin.patch("nodes", "node1", given, { subresource: "status", type: "application/merge-patch+json" });
    const allocatable = (): string | undefined => node().status?.allocatable?.["example.org/dongle"];
    await until("the dongles to be for pods", async () => allocatable() === "4", 20_000);
    kubelet.child.kill("SIGTERM");
    await kubelet.ended;
    const { resourceVersion } = node().metadata;
    await cluster.start();
    await until("a sign of life", async () => node().metadata.resourceVersion !== resourceVersion, 20_000);
    assert.equal(node().status?.capacity?.["example.org/dongle"], "4");
    assert.equal(allocatable(), "4");
  }, "busybox:1");
});
