import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { withClusterNode } from "../support/cluster-node.ts";
import { deleted, makeClaim, makeDriverObject } from "../support/csi-claims.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { until } from "../support/podwright.ts";

const hangsMs = 150_000;
/** Of a call; upstream's too. */
const limitMs = 120_000;

interface Event {
  readonly reason: string;
  readonly message: string;
}

function claimPod(name: string): Fields {
  const container = { image: DEMO_IMAGE, volumeMounts: [{ name: "d", mountPath: "/data" }] };
  return boundPod(name, container, { volumes: [{ name: "d", persistentVolumeClaim: { claimName: "c" } }] });
}

test("a stage that hangs for 150 s is given up after two minutes, holds up no other pod, and succeeds in the end", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    using temporary = testDirectory();
    await using driver = new CsiDriver({ root: node.podwright.layout.kubeletRoot, directory: temporary.path });
    makeDriverObject(cluster, driver.name);
    await driver.start();
    makeClaim(cluster, "c", driver.name);
    const began = performance.now();
    {
      using _hang = driver.hang("NodeStageVolume");
      server.admin.create(claimPod("hangs"));
      await until("the call", async () => driver.callsOf("NodeStageVolume").length === 1);
      server.admin.create(boundPod("other", { image: DEMO_IMAGE }));
      await cluster.ready("other");
      await deleted(cluster, "other");
      const isTold = async (): Promise<boolean> => {
        const events = server.admin.list("events") as unknown as readonly Event[];
        return events.some(({ reason, message }) => reason === "FailedMount" && message.includes("DeadlineExceeded"));
      };
      await until("the call to be given up", isTold, limitMs + 20_000);
      assert.ok(performance.now() - began > limitMs - 1000, "not before its time");
      await sleep(Math.max(0, began + hangsMs - performance.now()));
    }
    await cluster.ready("hangs");
    console.log(`Ready ${Math.round((performance.now() - began) / 1000)} s after its pod was created`);
    await deleted(cluster, "hangs");
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
    assert.deepEqual(driver.violations, []);
  }, DEMO_IMAGE);
});
