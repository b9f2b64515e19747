import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { deleted, makeClaim, makeDriverObject } from "../support/csi-claims.ts";
import { driverEffects, driverPod, type DriverPodOptions } from "../support/csi-driver-pod.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/podwright.ts";

const driver = "pod.csi.example.org";

/** Mount targets below a directory, as the kubelet sees them. */
function mountsBelow(directory: string): string[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return lines.map((line) => line.split(" ")[4] ?? "").filter((target) => target.startsWith(`${directory}/`));
}

/** A pod that writes to its claim all the time. */
function writer(name: string, claim: string): Fields {
  const command = ["sh", "-c", "while :; do echo written >>/data/log; sleep 0.2; done"];
  const container = { command, volumeMounts: [{ name: "d", mountPath: "/data" }] };
  return boundPod(name, container, { volumes: [{ name: "d", persistentVolumeClaim: { claimName: claim } }] });
}

/** The driver's pod, the pods that use its volumes, and what is seen of them on the node. */
class Scene {
  readonly cluster: ClusterNode;
  readonly options: DriverPodOptions;

  constructor(cluster: ClusterNode, options: DriverPodOptions) {
    this.cluster = cluster;
    this.options = options;
  }

  async startDriver(name: string): Promise<void> {
    const { admin } = this.cluster.server;
    const { spec, ...pod } = driverPod(name, this.options);
    admin.create({ ...pod, spec: { ...spec, nodeName: "node1" } });
    await this.cluster.ready(name);
    await admin.until("csinodes", "node1", (object) => JSON.stringify(object).includes(driver), 30_000);
  }

  async stopDriver(name: string): Promise<void> {
    await deleted(this.cluster, name);
    const { admin } = this.cluster.server;
    await admin.until("csinodes", "node1", (object) => !JSON.stringify(object).includes(driver), 30_000);
  }

  get effects(): string[] {
    return driverEffects(this.options);
  }

  /** Where the pod's volume is published. */
  target(pod: string, claim: string): string {
    const { uid } = this.cluster.server.admin.get("pods", `default/${pod}`).metadata;
    return `${this.options.root}/pods/${uid}/volumes/kubernetes.io~csi/pv-${claim}/mount`;
  }

  /** Waits until the pod's container has written more. */
  async writes(claim: string): Promise<void> {
    const log = join(this.options.data, `handle-${claim}`, "log");
    const bytes = (): number => (existsSync(log) ? statSync(log).size : 0);
    const before = bytes();
    await until(`what is written to ${claim}`, async () => bytes() > before);
  }

  restarts(pod: string): number[] {
    return (this.cluster.status(pod).containerStatuses ?? []).map(({ restartCount }) => restartCount);
  }
}

test("a driver runs as a pod like those of its DaemonSet: registered, probed, replaced and restarted under the pods that use it", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    using temporary = testDirectory();
    const root = node.podwright.layout.kubeletRoot;
    const ports = { driver: await freePort(), registrar: await freePort() };
    const scene = new Scene(cluster, { driver, root, data: join(temporary.path, "data"), ports });
    makeDriverObject(cluster, driver);
    await scene.startDriver("driver-a");
    const { spec } = server.admin.get("csinodes", "node1") as unknown as { spec: { drivers: { nodeID: string }[] } };
    assert.deepEqual(
      spec.drivers.map(({ nodeID }) => nodeID),
      ["node1"],
    );

    // What it mounts in its container is seen by the kubelet, and by the container that uses it.
    makeClaim(cluster, "c", driver);
    server.admin.create(writer("app", "c"));
    await cluster.ready("app");
    await scene.writes("c");
    const target = scene.target("app", "c");
    assert.ok(mountsBelow(root).includes(target));
    assert.ok(mountsBelow(`${root}/plugins/kubernetes.io/csi/${driver}`).some((path) => path.endsWith("/globalmount")));
    assert.deepEqual(scene.effects, ["NodeStageVolume", "NodePublishVolume"]);

    // The DaemonSet's next version: no volume goes away with the pod, and new ones wait for its successor.
    await scene.stopDriver("driver-a");
    assert.ok(mountsBelow(root).includes(target));
    await scene.writes("c");
    makeClaim(cluster, "d", driver);
    server.admin.create(writer("late", "d"));
    const missing = "not found in the list of registered CSI drivers";
    await until("the event", async () => JSON.stringify(server.admin.list("events")).includes(missing));
    await scene.startDriver("driver-b");
    await cluster.ready("late");
    await scene.writes("d");
    assert.deepEqual(scene.effects.slice(2), ["NodeStageVolume", "NodePublishVolume"]);

    kubelet.child.kill("SIGKILL");
    await kubelet.ended;
    await scene.writes("c");
    await cluster.start();
    await until("both volumes to be confirmed", async () => scene.effects.length === 8);
    assert.deepEqual(scene.effects.slice(4).toSorted(), [
      "NodePublishVolume",
      "NodePublishVolume",
      "NodeStageVolume",
      "NodeStageVolume",
    ]);
    assert.deepEqual(scene.restarts("driver-b"), [0, 0, 0]);
    assert.deepEqual(scene.restarts("app"), [0]);

    // Only its container restarts.
    const { id } = await node.podwright.container("driver-b", "driver");
    process.kill(await node.podwright.firstProcess(id), "SIGKILL");
    await until("its restart", async () => scene.restarts("driver-b").some((count) => count === 1));
    await cluster.ready("driver-b");
    await scene.writes("c");

    await deleted(cluster, "app");
    await deleted(cluster, "late");
    const calls = ["NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "NodeUnstageVolume"];
    await until("the volumes to be unstaged", async () => scene.effects.length === 12);
    assert.deepEqual(scene.effects.slice(8).toSorted(), calls);
    assert.match(readFileSync(join(scene.options.data, "handle-c", "log"), "utf8"), /^written\n/u);
    await scene.stopDriver("driver-b");
    await cluster.gone("driver-b");
    assert.deepEqual(mountsBelow(root), []);
  }, DEMO_IMAGE);
});
