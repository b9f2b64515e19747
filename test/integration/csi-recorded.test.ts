import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import type { RunningCommand } from "../support/command.ts";
import { deleted, grow, grown, withoutLoopDevices } from "../support/csi-claims.ts";
import { recordedData, recordedFiles, RecordedNode } from "../support/csi-recorded-node.ts";
import { recordedDriver, recordedVolumes, ToldCalls } from "../support/csi-recording.ts";
import { until } from "../support/podwright.ts";

const data = { name: "d", mountPath: "/data" };
const claimed = (claimName: string): Fields => ({ persistentVolumeClaim: { claimName } });
const inGroup: Fields = { securityContext: { fsGroup: 2000 } };

/** Pod a: a claim with fsGroup, also mounted by a subPath. */
async function claimIsMounted(node: RecordedNode): Promise<void> {
  node.makeClaim("a", "c", { storage: "64Mi" });
  // As the recorded pod's container leaves it.
  writeFileSync(join(node.driver.volumes.content(recordedVolumes.a[0]), "f"), "");
  const volumeMounts = [data, { name: "d", mountPath: "/sub", subPath: "s/t" }];
  node.makePod("a", claimed("c"), { volumeMounts }, inGroup);
  await node.cluster.ready("a");
  assert.deepEqual(node.files, recordedFiles("csi-tree-a-running.txt"));
}

/** Pods b, c, e: a block volume, an inline one with attributes and a secret, and a generic ephemeral one. */
async function otherKindsAreMounted(node: RecordedNode): Promise<void> {
  const { admin } = node.cluster.server;
  node.makeClaim("b", "disk", { volumeMode: "Block" });
  node.makePod("b", claimed("disk"), { volumeDevices: [{ name: "d", devicePath: "/dev/disk" }] });
  const secret = { user: Buffer.from("u1").toString("base64") };
  admin.create({ apiVersion: "v1", kind: "Secret", metadata: { name: "s", namespace: "default" }, data: secret });
  const volumeAttributes = { foo: "bar", size: "16Mi" };
  const csi = { driver: recordedDriver, fsType: "ext4", volumeAttributes, nodePublishSecretRef: { name: "s" } };
  node.makePod("c", { csi }, { volumeMounts: [data] }, inGroup);
  const accessModes = ["ReadWriteOncePod"];
  const spec = { accessModes, resources: { requests: { storage: "1Gi" } } };
  node.makePod("e", { ephemeral: { volumeClaimTemplate: { spec } } }, { volumeMounts: [data] });
  // The part of the ephemeral-volume controller.
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "e", uid: node.uidOf("e"), controller: true }];
  node.makeClaim("e", "e-d", { accessModes, ownerReferences });
  for (const pod of ["b", "c", "e"]) await node.cluster.ready(pod);
  assert.deepEqual(node.files, recordedFiles("csi-tree-b-c-e-running.txt"));
}

function assertData(node: RecordedNode): void {
  const [plugin, ofPods] = ["plugins/kubernetes.io/csi", "volumes/kubernetes.io~csi"];
  const [handle, volume] = recordedVolumes.a;
  const staged = createHash("sha256").update(handle).digest("hex");
  const directories = [
    `pods/${node.uidOf("a")}/${ofPods}/${volume}`,
    `pods/${node.uidOf("c")}/${ofPods}/d`,
    `${plugin}/${recordedDriver}/${staged}`,
    `${plugin}/volumeDevices/${recordedVolumes.b[1]}/data`,
  ];
  const texts = directories.map((path) => node.text(`${path}/vol_data.json`));
  assert.deepEqual(texts, recordedData());
}

/** Pod a2 uses the claim of a, which then grows under both. */
async function claimGrows(node: RecordedNode): Promise<void> {
  node.makePod("a2", claimed("c"), { volumeMounts: [{ ...data, readOnly: true }] });
  await node.cluster.ready("a2");
  await until("all volumes to be measured", async () => node.told.measured.length === 5);
  assert.deepEqual(node.told.measured, ToldCalls.recorded().measured);
  grow(node.cluster, "c", "128Mi");
  await grown(node.cluster, "c", "128Mi");
}

/** All is confirmed after a restart; of the pods that are deleted during another one, nothing is left. */
async function kubeletRestarts(node: RecordedNode, kubelet: RunningCommand): Promise<void> {
  kubelet.child.kill("SIGTERM");
  await kubelet.ended;
  const second = await node.restart();
  await until("all volumes to be confirmed", async () => node.publishedNow.size === 5);
  second.child.kill("SIGTERM");
  await second.ended;
  const { admin } = node.cluster.server;
  for (const pod of ["b", "c"]) admin.delete("pods", `default/${pod}`, { gracePeriodSeconds: 0 });
  await node.restart();
  await until("the others' to be confirmed", async () => node.publishedNow.size === 3);
  const left = recordedFiles("csi-tree-after-orphans.txt");
  await node.filesGo(left);
  assert.deepEqual(node.files, left);
}

test("volumes of every kind have the calls and the files of the Go kubelet, over restarts and to their ends", async () => {
  const work = async (cluster: ClusterNode, kubelet: RunningCommand): Promise<void> => {
    await cluster.nodeReady();
    using temporary = testDirectory();
    await using node = await RecordedNode.start(cluster, temporary.path);
    using _loops = withoutLoopDevices(node.root);
    await claimIsMounted(node);
    await otherKindsAreMounted(node);
    assertData(node);
    await claimGrows(node);
    await kubeletRestarts(node, kubelet);
    for (const pod of ["a", "a2", "e"]) await deleted(cluster, pod);
    const left = recordedFiles("csi-tree-after-deletes.txt");
    await node.filesGo(left);
    assert.deepEqual(node.files, left);

    const recorded = ToldCalls.recorded();
    const handles = [recordedVolumes.a[0], recordedVolumes.b[0], recordedVolumes.e[0], "<inline-volume-of-c>"];
    for (const handle of handles) assert.deepEqual(node.told.lifeOf(handle), recorded.lifeOf(handle));
    assert.deepEqual(node.driver.violations, []);
  };
  await withClusterNode(work, DEMO_IMAGE, "syncFrequency: 2s\n");
});
