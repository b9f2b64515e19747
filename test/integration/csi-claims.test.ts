import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { PersistentVolumeClaim } from "../../src/api/persistent-volume-claim.ts";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import {
  deleted,
  grow,
  grown,
  loopDevicesOver,
  makeClaim,
  makeDriverObject,
  volumesInUse,
  withoutLoopDevices,
} from "../support/csi-claims.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { until } from "../support/podwright.ts";

function claimPod(name: string, claim: string, mount: Fields = {}, spec: Fields = {}): Fields {
  const container = { image: DEMO_IMAGE, volumeMounts: [{ name: "d", mountPath: "/data", ...mount }] };
  return boundPod(name, container, { volumes: [{ name: "d", persistentVolumeClaim: { claimName: claim } }], ...spec });
}

test("a claim's volume is staged once for all its pods, survives restarts, and is unstaged after the last pod", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    using temporary = testDirectory();
    const directory = temporary.path;
    const root = node.podwright.layout.kubeletRoot;
    await using driver = new CsiDriver({ root, directory });
    makeDriverObject(cluster, driver.name);
    await driver.start();
    makeClaim(cluster, "c", driver.name);

    server.admin.create(claimPod("a", "c", { subPath: "s/t" }, { securityContext: { fsGroup: 2000 } }));
    await cluster.ready("a");
    server.admin.create(claimPod("b", "c"));
    await cluster.ready("b");
    assert.deepEqual(driver.effects, ["NodeStageVolume", "NodePublishVolume", "NodePublishVolume"]);
    const [stage] = driver.callsOf("NodeStageVolume");
    const staging = String(stage?.request["stagingTargetPath"]);
    assert.match(staging, new RegExp(`^${root}/plugins/kubernetes.io/csi/${driver.name}/[0-9a-f]{64}/globalmount$`));
    assert.deepEqual(stage?.request["volumeContext"], { a: "b" });
    assert.deepEqual(JSON.parse(readFileSync(join(staging, "../vol_data.json"), "utf8")), {
      driverName: driver.name,
      volumeHandle: "handle-c",
    });
    const content = driver.volumes.content("handle-c");
    const { gid, mode } = statSync(content);
    assert.deepEqual([gid, mode & 0o7777], [2000, 0o2775]);
    assert.ok(existsSync(join(content, "s/t")));
    writeFileSync(join(content, "kept"), "data");
    await until(
      "volumesInUse",
      async () => JSON.stringify(volumesInUse(cluster)) === `["kubernetes.io/csi/${driver.name}^handle-c"]`,
    );

    // Killed: volumes of the earlier run are unstaged from their state on disk, once no pod uses them.
    kubelet.child.kill("SIGKILL");
    await kubelet.ended;
    server.admin.delete("pods", "default/b");
    await cluster.start();
    await server.admin.until("pods", "default/b", (object) => object === undefined, 30_000);
    assert.equal(driver.callsOf("NodeUnpublishVolume").length, 1);
    assert.ok(!driver.effects.includes("NodeUnstageVolume"), "the other pod uses it");

    driver.fail("NodeUnpublishVolume", "Internal", { times: 2 });
    await deleted(cluster, "a");
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
    await until("its directory to go", async () => !existsSync(join(staging, "..")));
    assert.equal(driver.callsOf("NodeUnpublishVolume").length, 4);
    await until(
      "volumesInUse",
      async () => volumesInUse(cluster) === undefined || JSON.stringify(volumesInUse(cluster)) === "[]",
    );
    assert.equal(readFileSync(join(content, "kept"), "utf8"), "data");

    // A stage with an unknown outcome is unstaged, a definite failure is not.
    const unstaged = driver.callsOf("NodeUnstageVolume").length;
    driver.fail("NodeStageVolume", "DeadlineExceeded", { times: 100, afterwards: true });
    server.admin.create(claimPod("u", "c"));
    await until("a stage", async () => driver.volumes.isStaged("handle-c"));
    await deleted(cluster, "u");
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
    assert.equal(driver.callsOf("NodeUnstageVolume").length, unstaged + 1);
    assert.deepEqual(driver.violations, []);
    assert.equal(readFileSync(join(content, "kept"), "utf8"), "data");
  }, DEMO_IMAGE);
});

test("a block volume is a device in its containers, survives a restart, and is unpublished", async () => {
  await withClusterNode(async (cluster, kubelet) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    using temporary = testDirectory();
    const directory = temporary.path;
    const root = node.podwright.layout.kubeletRoot;
    await using driver = new CsiDriver({ root, directory });
    using _loops = withoutLoopDevices(root);
    makeDriverObject(cluster, driver.name);
    await driver.start();
    makeClaim(cluster, "disk", driver.name, { volumeMode: "Block" });
    const script = "test -b /dev/disk && echo written | dd of=/dev/disk conv=fsync && exec sleep 36000";
    const container = { command: ["sh", "-c", script], volumeDevices: [{ name: "d", devicePath: "/dev/disk" }] };
    const volumes = [{ name: "d", persistentVolumeClaim: { claimName: "disk" } }];
    server.admin.create(boundPod("blocks", container, { volumes }));
    await cluster.ready("blocks");
    const uid = server.admin.get("pods", "default/blocks")?.metadata.uid ?? "";
    const isWritten = (): boolean => readFileSync(driver.volumes.image("handle-disk"), "utf8").startsWith("written\n");
    await until("the container to write to its device", async () => isWritten());
    assert.deepEqual(driver.effects, ["NodeStageVolume", "NodePublishVolume"]);
    const devices = `${root}/plugins/kubernetes.io/csi/volumeDevices`;
    const link = `${root}/pods/${uid}/volumeDevices/kubernetes.io~csi/pv-disk`;
    assert.equal(readlinkSync(link), `${devices}/publish/pv-disk/${uid}`);
    assert.ok(statSync(`${devices}/pv-disk/dev/${uid}`).isBlockDevice());
    assert.deepEqual(loopDevicesOver(root), [`${devices}/pv-disk/dev/${uid}`]);
    assert.deepEqual(readdirSync(`${devices}/pv-disk/data`), ["vol_data.json"]);
    await until("the Events of the map", async () => {
      const events = server.admin.list("events") as readonly { readonly reason?: string }[];
      return events.filter(({ reason }) => reason === "SuccessfulMountVolume").length === 2;
    });

    kubelet.child.kill("SIGKILL");
    await kubelet.ended;
    const restarted = await cluster.start();
    await until("the volume to be confirmed", async () => driver.callsOf("NodePublishVolume").length === 2);
    restarted.child.kill("SIGKILL");
    await restarted.ended;
    // Deleted while no kubelet runs: found by its state on disk.
    server.admin.delete("pods", "default/blocks", { gracePeriodSeconds: 0 });
    await cluster.start();
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
    await until("its directories to go", async () => !existsSync(`${devices}/pv-disk`));
    assert.deepEqual(loopDevicesOver(root), []);
    assert.deepEqual(loopDevicesOver(directory), []);
    assert.ok(!existsSync(link));
    assert.deepEqual(driver.violations, []);
    assert.ok(isWritten());
  }, DEMO_IMAGE);
});

test("volumes that grow are expanded under their running pods, and before pods start", async () => {
  const work = async (cluster: ClusterNode): Promise<void> => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    using temporary = testDirectory();
    const directory = temporary.path;
    const root = node.podwright.layout.kubeletRoot;
    await using driver = new CsiDriver({ root, directory });
    using _loops = withoutLoopDevices(root);
    makeDriverObject(cluster, driver.name);
    await driver.start();
    makeClaim(cluster, "c", driver.name);
    makeClaim(cluster, "disk", driver.name, { volumeMode: "Block" });
    const devices = { volumeMounts: [], volumeDevices: [{ name: "d", devicePath: "/dev/disk" }] };
    const volumes = [{ name: "d", persistentVolumeClaim: { claimName: "disk" } }];
    server.admin.create(claimPod("a", "c"));
    server.admin.create(claimPod("b", "c"));
    server.admin.create(boundPod("blocks", devices, { volumes }));
    for (const pod of ["a", "b", "blocks"]) await cluster.ready(pod);

    driver.fail("NodeExpandVolume", "Internal", { times: 1 });
    grow(cluster, "c", "2Gi");
    grow(cluster, "disk", "8Mi");
    await grown(cluster, "c", "2Gi");
    await grown(cluster, "disk", "8Mi");
    assert.equal(driver.callsOf("NodeExpandVolume").length, 3, "once for each volume, and once more after the failure");
    assert.equal(driver.volumes.size("handle-c"), 2 * 1024 ** 3);
    const bytes = execFileSync("blockdev", ["--getsize64", driver.volumes.published("handle-disk")[0] ?? ""]);
    assert.equal(Number(bytes), 8 << 20);
    const about = async (): Promise<readonly string[]> => {
      const events = server.admin.list("events") as unknown as readonly Event[];
      return events.map(({ reason, involvedObject: { kind, name } }) => `${reason} ${kind} ${name}`);
    };
    await until("the Events", async () =>
      (await about()).includes("FileSystemResizeSuccessful PersistentVolumeClaim c"),
    );
    assert.ok((await about()).some((event) => event.startsWith("VolumeResizeFailed Pod ")));

    // Offline: with its next pod.
    for (const pod of ["a", "b", "blocks"]) await deleted(cluster, pod);
    await until("all to be unstaged", async () => driver.volumes.isIdle);
    grow(cluster, "c", "3Gi");
    const before = driver.effects.length;
    server.admin.create(claimPod("later", "c"));
    await cluster.ready("later");
    assert.deepEqual(driver.effects.slice(before), ["NodeStageVolume", "NodePublishVolume", "NodeExpandVolume"]);
    await grown(cluster, "c", "3Gi");
    await deleted(cluster, "later");
    await until("all to be unstaged", async () => driver.volumes.isIdle);
    await growsTooMuch(cluster, driver);
    assert.deepEqual(driver.violations, []);
  };
  await withClusterNode(work, DEMO_IMAGE, "syncFrequency: 5s\n");
});

/** A size that its driver cannot provide: recorded once, no obstacle to the pod, and withdrawn by a smaller request. */
async function growsTooMuch(cluster: ClusterNode, driver: CsiDriver): Promise<void> {
  const { admin } = cluster.server;
  const expansions = (): number => driver.callsOf("NodeExpandVolume").length;
  const before = expansions();
  driver.fail("NodeExpandVolume", "OutOfRange");
  grow(cluster, "c", "9Ei");
  admin.create(claimPod("much", "c"));
  await cluster.ready("much");
  const { status } = admin.get("persistentvolumeclaims", "default/c") as unknown as PersistentVolumeClaim;
  assert.deepEqual(status?.allocatedResourceStatuses, { storage: "NodeResizeInfeasible" });
  assert.deepEqual(status?.capacity, { storage: "3Gi" });
  const problem = "rpc error: code = OutOfRange desc = NodeExpandVolume fails by command";
  const failed = status?.conditions?.find(({ type }) => type === "NodeResizeError");
  assert.equal(failed?.message, `failed to expand pvc with Expander.NodeExpand failed to expand the volume ${problem}`);
  assert.equal(expansions(), before + 1, "the driver is not asked again");
  grow(cluster, "c", "4Gi");
  await grown(cluster, "c", "4Gi");
  assert.equal(driver.volumes.size("handle-c"), 4 * 1024 ** 3);
  await deleted(cluster, "much");
  await until("all to be unstaged", async () => driver.volumes.isIdle);
}

interface Event {
  readonly reason: string;
  readonly involvedObject: { readonly kind: string; readonly name: string };
}

test("twenty pods share one volume, which is staged once and unstaged after the last of them", async () => {
  await withClusterNode(async (cluster) => {
    const { server, node } = cluster;
    await cluster.nodeReady();
    using temporary = testDirectory();
    await using driver = new CsiDriver({ root: node.podwright.layout.kubeletRoot, directory: temporary.path });
    makeDriverObject(cluster, driver.name);
    await driver.start();
    makeClaim(cluster, "c", driver.name);
    const names = Array.from({ length: 20 }, (_, index) => `shares-${index}`);
    for (const name of names) server.admin.create(claimPod(name, "c"));
    await Promise.all(names.map(async (name) => await cluster.ready(name)));
    assert.equal(driver.callsOf("NodeStageVolume").length, 1);
    assert.equal(new Set(driver.volumes.published("handle-c")).size, names.length);
    // All but one: the volume stays staged for the last.
    await Promise.all(names.slice(1).map(async (name) => await deleted(cluster, name)));
    assert.equal(driver.volumes.published("handle-c").length, 1);
    assert.ok(driver.volumes.isStaged("handle-c"));
    await deleted(cluster, names[0] ?? "");
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
    assert.equal(driver.callsOf("NodeUnstageVolume").length, 1);
    assert.deepEqual(driver.violations, []);
  }, DEMO_IMAGE);
});
