import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeObject } from "../../src/api/node.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { ec2Machine, startMetadataServer } from "../support/metadata-server.ts";
import { until } from "../support/podwright.ts";

const node = (cluster: ClusterNode): NodeObject => cluster.server.admin.get("nodes", "node1");
const address = (cluster: ClusterNode, type: string): string | undefined =>
  node(cluster).status?.addresses?.find((each) => each.type === type)?.address;

async function event(cluster: ClusterNode, ...texts: readonly string[]): Promise<void> {
  await until(`an event with ${texts.join(", ")}`, async () =>
    cluster.server.admin.list("events").some((each) => texts.every((text) => JSON.stringify(each).includes(text))),
  );
}

test("a node takes its properties from the cloud's metadata service, and keeps running while that fails", async () => {
  await using metadata = await startMetadataServer(ec2Machine());
  const work = async (cluster: ClusterNode): Promise<void> => {
    await cluster.nodeReady();
    assert.equal(node(cluster).spec?.providerID, "aws:///eu-central-1b/i-0123456789abcdef0");
    const { labels = {} } = node(cluster).metadata;
    assert.equal(labels["node.kubernetes.io/instance-type"], "m7g.large");
    assert.equal(labels["topology.kubernetes.io/zone"], "eu-central-1b");
    assert.deepEqual([address(cluster, "InternalIP"), address(cluster, "Hostname")], ["10.1.2.3", "node1"]);
    metadata.reply = ec2Machine({ "local-ipv4": "<script>" });
    await event(cluster, "CloudMetadataFailed", "is not a valid InternalIP");
    assert.equal(address(cluster, "InternalIP"), "10.1.2.3");
    metadata.reply = ec2Machine({ "local-ipv4": "10.1.2.4", "placement/availability-zone": "eu-central-1c" });
    await until("the new address", async () => address(cluster, "InternalIP") === "10.1.2.4", 60_000);
    await until(
      "the new zone",
      async () => node(cluster).metadata.labels?.["topology.kubernetes.io/zone"] === "eu-central-1c",
    );
    assert.equal(node(cluster).spec?.providerID, "aws:///eu-central-1b/i-0123456789abcdef0", "an id is for ever");
    await cluster.nodeReady();
  };
  const flags = ["--cloud-metadata=ec2", `--cloud-metadata-url=${metadata.url}`];
  await withClusterNode(work, "busybox:1", "nodeStatusUpdateFrequency: 1s\n", flags);
});

test("a node of an external cloud is tainted until its controller has initialized it, and keeps the controller's addresses", async () => {
  const flags = ["--cloud-provider=external", "--node-ip=127.0.0.1"];
  const work = async (cluster: ClusterNode): Promise<void> => {
    await cluster.nodeReady();
    const taints = node(cluster).spec?.taints ?? [];
    assert.deepEqual(
      taints.map(({ key, value, effect }) => [key, value, effect]),
      [["node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"]],
    );
    assert.equal(node(cluster).metadata.annotations?.["alpha.kubernetes.io/provided-node-ip"], "127.0.0.1");
    assert.equal(address(cluster, "InternalIP"), "127.0.0.1");
    const addresses = [{ type: "ExternalIP", address: "198.51.100.1" }];
    cluster.server.admin.patch(
      "nodes",
      "node1",
      { status: { addresses } },
      { subresource: "status", type: "application/merge-patch+json" },
    );
    const { resourceVersion } = node(cluster).metadata;
    await until(
      "the node's next status",
      async () => node(cluster).metadata.resourceVersion !== resourceVersion,
      60_000,
    );
    assert.deepEqual(node(cluster).status?.addresses, addresses);
  };
  await withClusterNode(work, "busybox:1", "nodeStatusUpdateFrequency: 1s\nnodeStatusReportFrequency: 1s\n", flags);
});
