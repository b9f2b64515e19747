import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { deleted, makeClaim, makeDriverObject } from "../support/csi-claims.ts";
import { CsiDriver, type DriverCall } from "../support/csi-driver.ts";
import { patience } from "../support/patience.ts";
import { until } from "../support/podwright.ts";

interface Scene extends ClusterNode {
  readonly directory: string;
}

/** A driver with its CSIDriver object. */
async function startDriver(scene: Scene, name: string, spec: Fields = {}): Promise<CsiDriver> {
  const { node, directory } = scene;
  makeDriverObject(scene, name, spec);
  const driver = new CsiDriver({ name, root: node.podwright.layout.kubeletRoot, directory: join(directory, name) });
  return await driver.start();
}

function podWith(name: string, source: Fields): Fields {
  const container = { volumeMounts: [{ name: "d", mountPath: "/data" }] };
  return boundPod(name, container, { volumes: [{ name: "d", ...source }] });
}
const claimed = (claimName: string): Fields => ({ persistentVolumeClaim: { claimName } });

async function told({ server }: Scene, pod: string, message: string): Promise<void> {
  await until(`the Event ${message}`, async () =>
    server.admin.list("events").some((event) => {
      const each = event as unknown as { involvedObject: { name: string }; reason: string; message: string };
      return each.involvedObject.name === pod && each.reason === "FailedMount" && each.message === message;
    }),
  );
}

/** The first line of `podwright why`. */
async function verdict({ node }: Scene, pod: string): Promise<string> {
  return (await node.podwright.succeed("why", pod)).split("\n")[0] ?? "";
}

/** Half a second, one, two and four, each with a little that the machine takes. */
function assertBackOff(calls: readonly DriverCall[]): void {
  const gaps = calls.slice(1).map(({ atMs }, index) => Math.round(atMs - (calls[index]?.atMs ?? 0)));
  const late = gaps.map((gap, index) => gap - 500 * 2 ** index);
  assert.ok(
    gaps.length === 4 && late.every((ms) => ms > -20 && ms < 1500 * patience),
    `tries after ${gaps.join(", ")} ms`,
  );
}

const faults: Readonly<Record<string, (scene: Scene, driver: CsiDriver) => Promise<void>>> = {
  "a publish that fails for sure is tried again with upstream's back-off": async (scene, driver) => {
    driver.fail("NodePublishVolume", "InvalidArgument", { times: 4 });
    scene.server.admin.create(podWith("a", claimed("c")));
    await scene.ready("a");
    assertBackOff(driver.callsOf("NodePublishVolume"));
    const why = "rpc error: code = InvalidArgument desc = NodePublishVolume fails by command";
    await told(scene, "a", `MountVolume.SetUp failed for volume "pv-c" : ${why}`);
  },

  "a pod stays until its volume is unpublished, and not until it is unstaged": async (scene, driver) => {
    driver.fail("NodeUnpublishVolume", "Internal", { times: 4 });
    using unstaging = driver.hang("NodeUnstageVolume");
    scene.server.admin.delete("pods", "default/a");
    await until("four tries", async () => driver.callsOf("NodeUnpublishVolume").length === 4);
    assert.ok(scene.server.admin.find("pods", "default/a") !== undefined);
    await scene.server.admin.until("pods", "default/a", (object) => object === undefined, 30_000);
    assertBackOff(driver.callsOf("NodeUnpublishVolume"));
    await until("the unstage", async () => driver.callsOf("NodeUnstageVolume").length === 1);
    assert.ok(driver.volumes.isStaged("handle-c"));
    unstaging[Symbol.dispose]();
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
  },

  "a stage that failed for sure is not taken back": async (scene, driver) => {
    const before = driver.callsOf("NodeUnstageVolume").length;
    driver.fail("NodeStageVolume", "Internal", { times: 100 });
    scene.server.admin.create(podWith("b", claimed("c")));
    const why = "rpc error: code = Internal desc = NodeStageVolume fails by command";
    await told(scene, "b", `MountVolume.MountDevice failed for volume "pv-c" : ${why}`);
    assert.match(await verdict(scene, "b"), /^Pending: waits for a volume: volume "pv-c": rpc error: code = Internal/u);
    await deleted(scene, "b");
    driver.mend();
    assert.equal(driver.callsOf("NodeUnstageVolume").length, before);
  },

  "a publish of unknown outcome is taken back, and so is its stage": async (scene, driver) => {
    driver.fail("NodePublishVolume", "Unavailable", { times: 100, afterwards: true });
    scene.server.admin.create(podWith("u", claimed("c")));
    await until("the publish", async () => driver.volumes.published("handle-c").length === 1);
    await deleted(scene, "u");
    driver.mend();
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
  },

  "a running pod keeps what is mounted while its volume cannot be published again": async (scene) => {
    const driver = await startDriver(scene, "again.csi.example.org", { requiresRepublish: true });
    await using _driver = driver;
    scene.server.admin.create(podWith("r", { csi: { driver: driver.name } }));
    await scene.ready("r");
    const [first] = driver.callsOf("NodePublishVolume");
    const target = String(first?.request["targetPath"]);
    driver.fail("NodePublishVolume", "Internal", { times: 2 });
    const why = "rpc error: code = Internal desc = NodePublishVolume fails by command";
    await told(scene, "r", `MountVolume.SetUp failed for volume "d" : ${why}`);
    assert.equal((await systemMounts.below(target)).length, 1);
    await until("a publish that succeeds", async () => driver.callsOf("NodePublishVolume").at(-1)?.code === "OK");
    assert.ok(driver.callsOf("NodePublishVolume").every(({ request }) => request["targetPath"] === target));
    assert.deepEqual(
      scene.status("r").containerStatuses?.map(({ restartCount, ready }) => [restartCount, ready]),
      [[0, true]],
    );
    await deleted(scene, "r");
    assert.deepEqual(driver.violations, []);
  },

  "a claim, a driver, an attachment or an object that is missing is told": async (scene, driver) => {
    const { admin } = scene.server;
    makeDriverObject(scene, "attached.csi.example.org", { attachRequired: true });
    makeClaim(scene, "far", "attached.csi.example.org");
    admin.create(podWith("lost", claimed("nothere")));
    admin.create(podWith("undriven", { csi: { driver: "absent.example.org" } }));
    admin.create(podWith("unattached", claimed("far")));
    admin.create(podWith("secretive", { secret: { secretName: "nothere" } }));
    const missing = 'failed to fetch PVC from API server: persistentvolumeclaims "nothere" not found';
    const volumes = "unmounted volumes=[d], unattached volumes=[], failed to process volumes=[d]";
    const unprocessed = `error processing PVC default/nothere: ${missing}`;
    await told(scene, "lost", `Unable to attach or mount volumes: ${volumes}: ${unprocessed}`);
    const absent = "driver name absent.example.org not found in the list of registered CSI drivers";
    const client = "kubernetes.io/csi: mounter.SetUpAt failed to get CSI client";
    await told(scene, "undriven", `MountVolume.SetUp failed for volume "d" : ${client}: ${absent}`);
    const verdicts = {
      lost: /^Pending: waits for a volume: claim default\/nothere does not exist; create it/u,
      undriven: /^Pending: waits for a volume: .*run the driver on this node/u,
      unattached: /^Pending: waits for a volume: volume d is not attached yet: .*; see its VolumeAttachment/u,
      secretive: /^Pending: waits for a volume: volume "d": secret "nothere" not found; create it/u,
    };
    for (const [pod, expected] of Object.entries(verdicts)) {
      await until(`what why says of ${pod}`, async () => expected.test(await verdict(scene, pod)));
    }
    for (const pod of Object.keys(verdicts)) await deleted(scene, pod);
    assert.ok(driver.volumes.isIdle);
  },

  "a volume of a removed in-tree driver in a pod's own spec is one of its successor": async (scene) => {
    const driver = await startDriver(scene, "cinder.csi.openstack.org");
    await using _driver = driver;
    scene.server.admin.create(podWith("old", { cinder: { volumeID: "v-1", fsType: "ext4" } }));
    await scene.ready("old");
    const [stage] = driver.callsOf("NodeStageVolume");
    assert.equal(stage?.request["volumeId"], "v-1");
    const [publish] = driver.callsOf("NodePublishVolume");
    const end = "/volumes/kubernetes.io~csi/cinder.csi.openstack.org-v-1/mount";
    assert.ok(String(publish?.request["targetPath"]).endsWith(end), JSON.stringify(publish));
    await deleted(scene, "old");
    await until("the volume to be unstaged", async () => driver.volumes.isIdle);
    assert.deepEqual(driver.violations, []);
  },
};

test("what goes wrong with drivers", async (context) => {
  const work = async (cluster: ClusterNode): Promise<void> => {
    await cluster.nodeReady();
    using temporary = testDirectory();
    const directory = temporary.path;
    const scene: Scene = Object.assign(cluster, { directory });
    await using driver = await startDriver(scene, "test.csi.example.org");
    makeClaim(scene, "c", driver.name);
    for (const [name, shown] of Object.entries(faults)) await context.test(name, () => shown(scene, driver));
    assert.deepEqual(driver.violations, []);
  };
  await withClusterNode(work, DEMO_IMAGE, "syncFrequency: 5s\n");
});
