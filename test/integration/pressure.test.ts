import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeObject } from "../../src/api/node.ts";
import { boundPod } from "../support/bound-pod.ts";
import { withClusterNode } from "../support/cluster-node.ts";
import { until } from "../support/podwright.ts";

const image = "docker.io/library/busybox:latest";

// A soft threshold, which no machine keeps: the node is under pressure for as long as the test runs, and nothing is taken from
// what pods may have.
const settings = `
evictionSoft: { memory.available: "99.99%" }
evictionSoftGracePeriod: { memory.available: 10h }
`;

test("a node short of memory reports it, and admits no pod without a memory request", async () => {
  await withClusterNode(
    async (cluster) => {
      const { admin } = cluster.server;
      await cluster.nodeReady();
      const {
        conditions = [],
        capacity = {},
        allocatable = {},
      } = (admin.get("nodes", "node1") as NodeObject).status ?? {};
      const memory = conditions.find(({ type }) => type === "MemoryPressure");
      assert.deepEqual([memory?.status, memory?.reason], ["True", "KubeletHasInsufficientMemory"]);
      assert.equal(conditions.find(({ type }) => type === "DiskPressure")?.status, "False");
      const storage = ({ "ephemeral-storage": amount = "" }: Readonly<Record<string, string>>): number =>
        Number(amount.replace("Ki", "")) * (amount.endsWith("Ki") ? 1024 : 1);
      assert.ok(storage(allocatable) > 0 && storage(allocatable) < storage(capacity), JSON.stringify(allocatable));

      admin.create(boundPod("best-effort"));
      admin.create(boundPod("burstable", { resources: { requests: { memory: "1Mi", "ephemeral-storage": "1Mi" } } }));
      admin.create(boundPod("large", { resources: { requests: { memory: "1Mi", "ephemeral-storage": "1Ei" } } }));
      await until("the refusals", async () =>
        ["best-effort", "large"].every((name) => cluster.status(name).phase === "Failed"),
      );
      const { reason, message } = cluster.status("best-effort");
      assert.deepEqual([reason, message], ["Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. "]);
      assert.equal(cluster.status("large").reason, "OutOfephemeral-storage");
      await cluster.ready("burstable");
      const events = (): string => JSON.stringify(admin.list("events"));
      await until("the node's event", async () => events().includes("NodeHasInsufficientMemory"));
    },
    image,
    settings,
  );
});
