import assert from "node:assert/strict";
import { test } from "node:test";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { sleep, until } from "../support/podwright.ts";

const image = "docker.io/library/busybox:latest";
const outageMs = 10 * 60_000;
const crashEveryMs = 150_000;

const staticManifest = `apiVersion: v1
kind: Pod
metadata: { name: static }
spec:
  terminationGracePeriodSeconds: 1
  containers: [{ name: c, image: "${image}", imagePullPolicy: Never, command: [sleep, "36000"] }]
`;

/** Kills the pod's container and waits until it runs again. */
async function crash({ node: { podwright } }: ClusterNode, name: string): Promise<void> {
  const before = await podwright.container(name, "c");
  process.kill(await podwright.firstProcess(before.id), "SIGKILL");
  const runsAgain = async (): Promise<boolean> => {
    const { restartCount, state } = await podwright.container(name, "c");
    return restartCount === before.restartCount + 1 && state === "running";
  };
  await until("a restart without the API server", runsAgain, 120_000);
}

test("10 minutes without the API server: pods keep running and are restarted, a static pod starts, nothing is deleted, and all is reported afterwards", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    for (const name of ["calm", "crashes", "goes"]) server.admin.create(boundPod(name));
    for (const name of ["calm", "crashes", "goes"]) await cluster.ready(name);
    const calm = await node.podwright.container("calm", "c");

    await server.wire.down();
    const endMs = Date.now() + outageMs;
    server.admin.delete("pods", "default/goes");
    server.admin.create(boundPod("late"));
    await node.write("static.yaml", staticManifest);
    let crashes = 0;
    while (Date.now() < endMs - crashEveryMs) {
      await crash(cluster, "crashes");
      crashes++;
      await sleep(crashEveryMs);
    }
    const names = (await node.podwright.pods()).map(({ name }) => name).toSorted();
    assert.deepEqual(names, ["calm", "crashes", "goes", "static-node1"]);
    await sleep(endMs - Date.now());

    await server.wire.up();
    await server.admin.until("pods", "default/goes", (object) => object === undefined, 60_000);
    await cluster.ready("late");
    await cluster.nodeReady();
    await server.admin.until("pods", "default/static-node1", (object) => object !== undefined, 30_000);
    const restarts = async (): Promise<boolean> =>
      cluster.status("crashes").containerStatuses?.[0]?.restartCount === crashes;
    await until("the restarts to be told", restarts, 30_000);
    const after = await node.podwright.container("calm", "c");
    assert.deepEqual([after.id, after.restartCount], [calm.id, 0]);
    assert.ok(crashes >= 3);
  }, image);
});
