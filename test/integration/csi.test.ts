import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { startClusterDriver } from "../support/csi-claims.ts";
import type { CsiDriver, CsiDriverOptions } from "../support/csi-driver.ts";
import { until } from "../support/podwright.ts";

const nodeIdKey = "csi.volume.kubernetes.io/nodeid";

/** A driver that has its CSIDriver object, on the cluster's node. */
function startDriver(
  cluster: ClusterNode,
  directory: string,
  spec: Fields = {},
  options: Partial<CsiDriverOptions> = {},
): Promise<CsiDriver> {
  return startClusterDriver(cluster, directory, { podInfoOnMount: true, ...spec }, options);
}

function inlinePod(name: string, driver: string, spec: Fields = {}, csi: Fields = {}): Fields {
  const container = { image: DEMO_IMAGE, volumeMounts: [{ name: "d", mountPath: "/data" }] };
  return boundPod(name, container, { volumes: [{ name: "d", csi: { driver, ...csi } }], ...spec });
}

function uidOf({ server }: ClusterNode, pod: string): string {
  return server.admin.get("pods", `default/${pod}`).metadata.uid;
}

async function deleted({ server }: ClusterNode, pod: string): Promise<void> {
  server.admin.delete("pods", `default/${pod}`);
  await server.admin.until("pods", `default/${pod}`, (object) => object === undefined, 30_000);
}

function eventsOf({ server }: ClusterNode, pod: string, reason: string): string[] {
  return server.admin.list("events").flatMap((event) => {
    const each = event as unknown as { involvedObject: { name: string }; reason: string; message: string };
    return each.involvedObject.name === pod && each.reason === reason ? [each.message] : [];
  });
}

test("a driver registers, appears in CSINode, and its inline volumes are created and removed with their pods", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    const csiNode = server.admin.get("csinodes", "node1") as unknown as {
      metadata: { annotations: object; ownerReferences: { uid: string }[] };
      spec: { drivers: object[] };
    };
    assert.deepEqual(csiNode.spec.drivers, []);
    assert.equal(csiNode.metadata.ownerReferences[0]?.uid, server.admin.get("nodes", "node1").metadata.uid);
    assert.ok("storage.alpha.kubernetes.io/migrated-plugins" in csiNode.metadata.annotations);

    const topology = { "topology.test/node": "node1" };
    using directory = testDirectory();
    await using driver = await startDriver(
      cluster,
      directory.path,
      { tokenRequests: [{ audience: "vault", expirationSeconds: 900 }] },
      { maxVolumes: 20n, topology },
    );
    await server.admin.until("csinodes", "node1", (object) => JSON.stringify(object).includes(driver.name), 10_000);
    assert.deepEqual((server.admin.get("csinodes", "node1") as unknown as typeof csiNode).spec.drivers, [
      { name: driver.name, nodeID: "node1", topologyKeys: ["topology.test/node"], allocatable: { count: 20 } },
    ]);
    const { metadata } = server.admin.get("nodes", "node1");
    assert.equal(metadata.annotations?.[nodeIdKey], `{"${driver.name}":"node1"}`);
    assert.equal(metadata.labels?.["topology.test/node"], "node1");
    await until("the driver to be told", async () => driver.notified.length > 0);
    assert.deepEqual(driver.notified, [{ registered: true, error: "" }]);

    server.admin.create({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s", namespace: "default" },
      data: { user: Buffer.from("u1").toString("base64") },
    });
    const csi = { volumeAttributes: { foo: "bar" }, nodePublishSecretRef: { name: "s" }, fsType: "ext4" };
    server.admin.create(inlinePod("c", driver.name, { securityContext: { fsGroup: 2000 } }, csi));
    await cluster.ready("c");
    const uid = uidOf(cluster, "c");
    const volume = join(node.podwright.layout.kubeletRoot, "pods", uid, "volumes/kubernetes.io~csi/d");
    const [publish] = driver.callsOf("NodePublishVolume");
    const request = publish?.request as Record<string, Record<string, string>>;
    const { "csi.storage.k8s.io/serviceAccount.tokens": tokens = "", ...context } = request["volumeContext"] ?? {};
    assert.deepEqual(context, {
      foo: "bar",
      "csi.storage.k8s.io/ephemeral": "true",
      "csi.storage.k8s.io/pod.name": "c",
      "csi.storage.k8s.io/pod.namespace": "default",
      "csi.storage.k8s.io/pod.uid": uid,
      "csi.storage.k8s.io/serviceAccount.name": "default",
    });
    const vault = (JSON.parse(tokens) as Record<string, Record<string, string>>)["vault"];
    assert.ok((vault?.["token"] ?? "").length > 20);
    assert.match(vault?.["expirationTimestamp"] ?? "", /^\d{4}-.*Z$/);
    assert.deepEqual(request["secrets"], { user: "u1" });
    assert.equal(publish?.request["targetPath"], `${volume}/mount`);
    assert.equal(publish?.request["stagingTargetPath"], "");
    assert.deepEqual(publish?.request["volumeCapability"], {
      accessType: { case: "mount", value: { fsType: "ext4", mountFlags: [], volumeMountGroup: "" } },
      accessMode: { mode: 7 },
    });
    assert.match(readFileSync(`${volume}/vol_data.json`, "utf8"), /"specVolID":"d".*"volumeLifecycleMode":"Ephemeral"/);
    const { uid: owner, gid, mode } = (await import("node:fs")).statSync(`${volume}/mount`);
    assert.deepEqual([owner, gid, mode & 0o7777], [0, 2000, 0o2775]);

    await deleted(cluster, "c");
    assert.deepEqual(driver.effects, ["NodePublishVolume", "NodeUnpublishVolume"]);
    await until("the pod's directory to go", async () => !existsSync(volume));

    await driver.unregister();
    await server.admin.until("csinodes", "node1", (object) => !JSON.stringify(object).includes(driver.name), 10_000);
    await until("the annotation to go", async () => {
      return server.admin.get("nodes", "node1").metadata.annotations?.[nodeIdKey] === undefined;
    });
    assert.equal(server.admin.get("nodes", "node1").metadata.labels?.["topology.test/node"], "node1");
    assert.deepEqual(driver.violations, []);
  }, DEMO_IMAGE);
});

test("a volume waits only for its own driver", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    server.admin.create(inlinePod("absent", "absent.example.org"));
    const missing =
      'MountVolume.SetUp failed for volume "d" : kubernetes.io/csi: mounter.SetUpAt failed to get CSI client: ' +
      "driver name absent.example.org not found in the list of registered CSI drivers";
    await until("the event", async () => eventsOf(cluster, "absent", "FailedMount").includes(missing));

    using directory = testDirectory();
    await using driver = await startDriver(cluster, directory.path);
    await until("the registration", async () => driver.notified.length > 0);
    driver.fail("NodePublishVolume", "InvalidArgument", { times: 2 });
    server.admin.create(inlinePod("faulty", driver.name));
    await cluster.ready("faulty");
    assert.equal(driver.callsOf("NodePublishVolume").length, 3);
    const failed =
      'MountVolume.SetUp failed for volume "d" : rpc error: code = InvalidArgument desc = NodePublishVolume fails by command';
    assert.ok(eventsOf(cluster, "faulty", "FailedMount").includes(failed));

    // Its publish has an unknown outcome, so it is unpublished.
    driver.fail("NodePublishVolume", "Unavailable", { times: 100, afterwards: true });
    server.admin.create(inlinePod("uncertain", driver.name));
    const uncertain = uidOf(cluster, "uncertain");
    const target = join(node.podwright.layout.kubeletRoot, "pods", uncertain, "volumes/kubernetes.io~csi/d/mount");
    await until("the publish", async () => existsSync(target));
    await deleted(cluster, "uncertain");
    const taken = driver.callsOf("NodeUnpublishVolume").some(({ request }) => request["targetPath"] === target);
    assert.ok(taken);

    // The driver is away: its pod waits, and its mount stays where it is.
    writeFileSync(join(driver.volumes.content("x"), "f"), "kept");
    await driver.stop();
    server.admin.delete("pods", "default/faulty");
    const faulty = uidOf(cluster, "faulty");
    const mounted = join(node.podwright.layout.kubeletRoot, "pods", faulty, "volumes/kubernetes.io~csi/d/mount");
    server.admin.create(boundPod("other"));
    await cluster.ready("other");
    assert.ok(existsSync(mounted));
    assert.ok(server.admin.find("pods", "default/faulty") !== undefined);
    await driver.serve();
    await server.admin.until("pods", "default/faulty", (object) => object === undefined, 30_000);
    assert.ok(!existsSync(mounted));
    assert.deepEqual(readdirSync(driver.volumes.content("x")), ["f"]);
    assert.deepEqual(driver.violations, []);
  }, DEMO_IMAGE);
});
