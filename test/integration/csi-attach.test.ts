import assert from "node:assert/strict";
import { test } from "node:test";
import { CsiNames } from "../../src/csi/names.ts";
import { systemHashing } from "../../src/linux/files/hashing.ts";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import {
  bindClaim,
  deleted,
  makeClaim,
  makeUnboundClaim,
  startClusterDriver,
  volumesInUse,
} from "../support/csi-claims.ts";
import type { CsiDriver, CsiDriverOptions } from "../support/csi-driver.ts";
import { until } from "../support/podwright.ts";

/** A driver whose volumes are attached to the cluster's node. */
function startDriver(
  cluster: ClusterNode,
  directory: string,
  spec: Fields = {},
  options: Partial<CsiDriverOptions> = {},
): Promise<CsiDriver> {
  return startClusterDriver(cluster, directory, { attachRequired: true, ...spec }, options);
}

function claimPod(name: string, claimName: string): Fields {
  const container = { image: DEMO_IMAGE, volumeMounts: [{ name: "d", mountPath: "/data" }] };
  return boundPod(name, container, { volumes: [{ name: "d", persistentVolumeClaim: { claimName } }] });
}

/** As the driver's attacher leaves the VolumeAttachment of a claim's volume. */
function makeAttachment(cluster: ClusterNode, driver: string, claim: string, status: Fields): void {
  const names = new CsiNames(systemHashing, cluster.node.podwright.layout.kubeletRoot, "node1");
  const name = names.attachment(driver, `handle-${claim}`);
  const { admin } = cluster.server;
  const spec = { attacher: driver, nodeName: "node1", source: { persistentVolumeName: `pv-${claim}` } };
  admin.create({ apiVersion: "storage.k8s.io/v1", kind: "VolumeAttachment", metadata: { name }, spec });
  admin.patch("volumeattachments", name, { status }, { subresource: "status" });
}

test("a claim that is bound after its pod: the volume is staged once it is attached, and in use until it is unstaged", async () => {
  await withClusterNode(async (cluster) => {
    const { admin } = cluster.server;
    await cluster.nodeReady();
    using directory = testDirectory();
    await using driver = await startDriver(cluster, directory.path);
    // With volumeBindingMode WaitForFirstConsumer the provisioner waits for the pod.
    makeUnboundClaim(cluster, "c");
    admin.create(claimPod("a", "c"));
    await until("the event", async () => JSON.stringify(admin.list("events")).includes("PVC is not bound"));
    bindClaim(cluster, "c", driver.name);

    // The attach-detach controller's part.
    const volume = `kubernetes.io/csi/${driver.name}^handle-c`;
    await until(
      "the volume to be in use",
      async () => JSON.stringify(volumesInUse(cluster)) === JSON.stringify([volume]),
    );
    makeAttachment(cluster, driver.name, "c", { attached: true, attachmentMetadata: { device: "/dev/x" } });
    assert.deepEqual(driver.effects, []);
    const volumesAttached = [{ name: volume, devicePath: "" }];
    admin.patch("nodes", "node1", { status: { volumesAttached } }, { subresource: "status" });
    await cluster.ready("a");
    assert.deepEqual(driver.effects, ["NodeStageVolume", "NodePublishVolume"]);
    for (const { request } of driver.calls.filter(({ method }) => driver.effects.includes(method))) {
      assert.deepEqual(request["publishContext"], { device: "/dev/x" });
    }

    using unstaging = driver.hang("NodeUnstageVolume");
    await deleted(cluster, "a");
    assert.deepEqual(volumesInUse(cluster), [volume], "it must not be detached yet");
    unstaging[Symbol.dispose]();
    await until("the volume to be in use no more", async () => JSON.stringify(volumesInUse(cluster) ?? []) === "[]");
    assert.ok(driver.volumes.isIdle);
    assert.deepEqual(driver.violations, []);
  }, DEMO_IMAGE);
});

test("a volume that the node has no place for rejects its pod, and the driver's count is read again", async () => {
  await withClusterNode(async (cluster) => {
    const { admin } = cluster.server;
    await cluster.nodeReady();
    using directory = testDirectory();
    await using driver = await startDriver(
      cluster,
      directory.path,
      { nodeAllocatableUpdatePeriodSeconds: 3600 },
      { maxVolumes: 20n },
    );
    const hasCount = (count: number) => (object: unknown) => JSON.stringify(object).includes(`{"count":${count}}`);
    await admin.until("csinodes", "node1", hasCount(20), 10_000);
    makeClaim(cluster, "c", driver.name);
    driver.maxVolumes = 5n;
    admin.create(claimPod("full", "c"));
    // Of an attempt for this pod: in a later second than its creation.
    const time = new Date(Date.now() + 1000).toISOString();
    const attachError = { errorCode: 8, message: "no place for another volume", time };
    makeAttachment(cluster, driver.name, "c", { attached: false, attachError });
    await until("the pod to be rejected", async () => cluster.status("full").phase === "Failed");
    assert.equal(cluster.status("full").reason, "VolumeAttachmentLimitExceeded");
    assert.match(cluster.status("full").message ?? "", /no place for another volume/u);
    await admin.until("csinodes", "node1", hasCount(5), 10_000);
    assert.deepEqual(driver.effects, []);
  }, DEMO_IMAGE);
});
