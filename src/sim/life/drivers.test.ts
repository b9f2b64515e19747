import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DriverScene, podWithVolumes } from "../../../test/support/sim-driver-scene.ts";
import { vectorText } from "../../../test/support/vectors.ts";
import { fieldsAt, listAt } from "../api-server/values.ts";
import { inlineDriver, plainDriver, stagingDriver } from "../csi/claimed-volumes.ts";
import { soundDriver } from "../csi/driver-faults.ts";

const canceled = `CSI driver ${inlineDriver.name}: nodePublishVolume was canceled`;
const everything = ["claim-1", "claim-2", "claim-3", "inline"] as const;

/** Labels of the Go kubelet's operations on volumes of a driver: plugin, operation, status, migrated. */
function recordedOperations(driver: string): string[] {
  const [, series = ""] = vectorText("csi-metrics.txt").split("# TYPE storage_operation_duration_seconds histogram\n");
  const lines = series.split("\n# ", 1)[0]?.split("\n") ?? [];
  const ofDriver = lines.filter((line) => line.includes(`"kubernetes.io/csi:${driver}"`));
  return ofDriver.map((line) => {
    const labels = new Map([...line.matchAll(/(\w+)="([^"]*)"/gu)].map(([, name = "", value = ""]) => [name, value]));
    const names = ["volume_plugin", "operation_name", "status", "migrated"];
    return names.map((name) => labels.get(name)?.replace(driver, "DRIVER")).join(" ");
  });
}

/** Two pods with the same volumes come and go. @param killAt podwright is killed at that call, 1 for the first */
async function comeAndGo(killAt?: number): Promise<{ readonly scene: DriverScene; readonly moments: number }> {
  const scene = new DriverScene();
  const moments = await scene.runTwo(everything, killAt);
  scene.cluster.delete("uid-a");
  await scene.pass(40_000);
  assert.ok(scene.runs("uid-b"));
  scene.cluster.delete("uid-b");
  await scene.pass(40_000);
  return { scene, moments: moments() };
}

describe("a node with CSI drivers", () => {
  test("continues after a kill at any call of a driver, and leaves nothing mounted", async () => {
    const { scene: calm, moments } = await comeAndGo();
    assert.deepEqual(await calm.problems(), []);
    // Each call as it begins and as it ends.
    assert.ok(moments >= 40, `${moments} moments`);
    for (let killAt = 1; killAt <= moments; killAt++) {
      const { scene } = await comeAndGo(killAt);
      assert.equal(scene.node.lives, 2, `killed at ${killAt}`);
      assert.deepEqual(await scene.problems(), [], `killed at ${killAt}`);
      assert.deepEqual(scene.node.drivers.volumes.targets, [], `killed at ${killAt}`);
    }
  });

  test("lists a driver that comes back with another node ID and other topology keys, also while podwright was away", async () => {
    const scene = new DriverScene();
    const driver = scene.driver(plainDriver.name);
    const listed = (): unknown => {
      const [csiNode] = scene.cluster.server.registry.store.list("csinodes");
      const entries = listAt(fieldsAt(csiNode?.value ?? {}, "spec"), "drivers");
      return entries.find(({ name }) => name === plainDriver.name);
    };
    scene.node.start();
    await scene.pass(30_000);
    for (const version of [1, 2]) {
      if (version === 2) scene.node.kill();
      driver.stop(false);
      driver.upgrade();
      driver.start();
      if (version === 2) scene.node.start();
      await scene.pass(30_000);
      const { name } = plainDriver;
      const topologyKeys = [`topology.${name}/v${version % 2}`];
      assert.deepEqual(listed(), { name, nodeID: `sim-${name}-${version}`, topologyKeys });
    }
    assert.deepEqual([await scene.problems(), scene.nodeReady], [[], "True"]);
  });

  test("stays ready over a restart, while CSINode is being read", async () => {
    const scene = new DriverScene();
    scene.node.start();
    await scene.pass(30_000);
    assert.equal(scene.nodeReady, "True");
    const said: unknown[] = [];
    scene.cluster.server.registry.store.onChange(({ resource }) => {
      if (resource === "nodes") said.push(scene.nodeReady);
    });
    scene.node.kill();
    scene.node.start();
    await scene.pass(60_000);
    assert.ok(said.length > 0);
    assert.deepEqual(new Set(said), new Set(["True"]));
  });

  test("cancels the upkeep of running pods' volumes when it is asked to stop", async () => {
    const scene = new DriverScene();
    scene.node.start();
    scene.cluster.want(podWithVolumes("a", "inline"));
    await scene.pass(30_000);
    for (const driver of scene.node.drivers.all) driver.faults = { ...soundDriver, refuses: 1 };
    await scene.pass(300_000);
    assert.ok(scene.runs("uid-a"), "a failure leaves the pod as it is");
    assert.deepEqual(await scene.node.stop((forMs) => scene.pass(forMs)), []);
  });

  test("tells no failure of a driver's call that its stop cancels", async () => {
    const scene = new DriverScene();
    const { node } = scene;
    node.start();
    scene.cluster.want(podWithVolumes("a", "inline"));
    await scene.pass(30_000);
    for (const driver of node.drivers.all) driver.faults = { ...soundDriver, hangs: 1 };
    await scene.pass(70_000);
    // Other work takes longer to end than the call.
    scene.faults.begin({ diskDelayMaxMs: 5000 }, 60_000);
    await scene.pass(10_000);
    const before = node.entries.length;
    assert.deepEqual(await node.stop((forMs) => scene.pass(forMs)), []);
    const ended = node.entries.slice(before).filter(({ what }) => /^(?:Publish|Republish)Volume$/u.test(what));
    assert.deepEqual(
      ended.map(({ what, result, message }) => [what, result, message]),
      [
        ["PublishVolume", "unknown", `rpc error: code = Canceled desc = ${canceled}`],
        ["RepublishVolume", "unknown", "podwright is stopping"],
      ],
    );
  });

  test("killed before it has written a volume's record, it leaves no directory of the volume", async () => {
    const scene = new DriverScene();
    const directory = `/var/lib/kubelet/plugins/kubernetes.io/csi/${stagingDriver.name}/left`;
    await scene.node.files.makeDirectory(`${directory}/globalmount`, 0o750);
    scene.node.start();
    await scene.pass(30_000);
    assert.equal(await scene.node.files.stat(directory), undefined);
  });

  test("leaves no directory of an unstaged volume on a full disk", async () => {
    const scene = new DriverScene();
    scene.node.start();
    await scene.pass(30_000);
    scene.cluster.want(podWithVolumes("a", "claim-1"));
    scene.faults.begin({ diskFull: true }, 60_000);
    await scene.pass(30_000);
    scene.cluster.delete("uid-a");
    await scene.pass(300_000);
    assert.deepEqual(await scene.problems(), []);
  });

  test("mounts volumes again after a reboot, before their containers start, and keeps their files", async () => {
    const scene = new DriverScene();
    const { node, clock } = scene;
    await node.power.boot();
    scene.cluster.want(podWithVolumes("a", "claim-1", "inline"));
    await scene.pass(60_000);
    assert.ok(scene.runs("uid-a"));
    node.power.off("power lost");
    assert.deepEqual(node.drivers.volumes.targets, []);
    node.power.bootAfter(5000);
    for (const driver of node.drivers.all) clock.schedule("a driver to start", 20_000, () => driver.start());
    await scene.pass(15_000);
    assert.ok(!scene.runs("uid-a"), "its drivers are not there yet");
    await scene.pass(180_000);
    assert.ok(scene.runs("uid-a"));
    assert.deepEqual(await scene.problems(), []);
  });

  test("delays neither other pods nor their removal while a driver does not respond", async () => {
    const scene = new DriverScene();
    scene.node.start();
    for (const name of ["a", "b"]) scene.cluster.want(podWithVolumes(name, "claim-3"));
    await scene.pass(60_000);
    const driver = scene.driver(plainDriver.name);
    driver.faults = { ...soundDriver, hangs: 1 };
    scene.cluster.delete("uid-a");
    scene.cluster.want(podWithVolumes("late", "claim-3"));
    scene.cluster.want(podWithVolumes("other", "claim-1"));
    scene.cluster.want(podWithVolumes("plain"));
    await scene.pass(30_000);
    assert.ok(scene.runs("uid-other") && scene.runs("uid-plain"));
    for (const name of ["other", "plain"]) scene.cluster.delete(`uid-${name}`);
    await scene.pass(30_000);
    assert.equal(scene.cluster.pod("uid-other"), undefined);
    assert.equal(scene.cluster.pod("uid-plain"), undefined);
    driver.faults = soundDriver;
    driver.stop(false);
    driver.start();
    await scene.pass(300_000);
    assert.ok(scene.runs("uid-late"));
    assert.deepEqual(await scene.problems(), []);
  });

  test("asks a driver that refuses at growing intervals, however often its pod stops waiting", async () => {
    const scene = new DriverScene();
    scene.node.start();
    await scene.pass(30_000);
    const driver = scene.driver(plainDriver.name);
    driver.faults = { ...soundDriver, refuses: 1 };
    const askedMs: number[] = [];
    driver.onCall(({ method, when }) => {
      if (method === "publish" && when === "begins") askedMs.push(scene.clock.nowMs);
    });
    scene.cluster.want(podWithVolumes("a", "claim-3"));
    await scene.pass(700_000);
    const distances = askedMs.slice(1).map((ms, at) => ms - (askedMs[at] ?? 0));
    assert.ok(askedMs.length >= 9 && askedMs.length <= 13, distances.join(" "));
    assert.ok((distances.at(-1) ?? 0) >= 122_000, distances.join(" "));
    driver.faults = soundDriver;
    await scene.pass(180_000);
    assert.ok(scene.runs("uid-a"));
    assert.deepEqual(await scene.problems(), []);
  });

  test("reverts calls with unknown outcomes, whether or not they had an effect", async () => {
    for (const faults of [{ lies: 1 }, { doubts: 1 }, { hangs: 1 }]) {
      const scene = new DriverScene();
      scene.node.start();
      scene.cluster.want(podWithVolumes("b", "claim-2"));
      await scene.pass(30_000);
      const driver = scene.driver(stagingDriver.name);
      driver.faults = { ...soundDriver, ...faults };
      scene.cluster.want(podWithVolumes("a", "claim-1"));
      await scene.pass(20_000);
      assert.ok(!scene.runs("uid-a"));
      scene.cluster.delete("uid-a");
      await scene.pass(20_000);
      driver.faults = soundDriver;
      driver.stop(false);
      driver.start();
      await scene.pass(300_000);
      assert.ok(scene.done("UnstageVolume").length > 0, JSON.stringify(faults));
      assert.deepEqual(await scene.problems(), [], JSON.stringify(faults));
    }
  });

  test("tells the Node that a volume is in use no more with the next request after its unstage", async () => {
    const scene = new DriverScene();
    const { clock, cluster } = scene;
    scene.node.start();
    await scene.pass(30_000);
    const inUse = (): readonly string[] => cluster.storage?.inUse ?? [];
    // At different distances from the node's regular statuses.
    for (const offsetMs of [0, 1700, 4100, 8300]) {
      const name = `after-${offsetMs}`;
      cluster.want(podWithVolumes(name, "claim-1"));
      await scene.pass(30_000 + offsetMs);
      assert.ok(scene.runs(`uid-${name}`));
      assert.equal(inUse().length, 1);
      let writtenAtMs: number | undefined;
      using _nodes = cluster.server.registry.store.onChange(({ resource }) => {
        if (resource === "nodes" && inUse().length === 0) writtenAtMs ??= clock.nowMs;
      });
      const before = scene.node.entries.length;
      cluster.delete(`uid-${name}`);
      await scene.pass(30_000);
      const unstaged = scene.node.entries.slice(before).find(({ kind, what }) => {
        return kind === "outcome" && what === "UnstageVolume";
      });
      assert.ok(unstaged !== undefined && writtenAtMs !== undefined);
      const laterMs = writtenAtMs - unstaged.atMs;
      assert.ok(laterMs >= 0 && laterMs <= 200, `${laterMs} ms later`);
    }
    assert.deepEqual(await scene.problems(), []);
  });

  test("measures operations on volumes under the names that the Go kubelet gives them", async () => {
    const scene = new DriverScene(true);
    scene.node.start();
    await scene.pass(30_000);
    const driver = scene.driver(stagingDriver.name);
    const pod = podWithVolumes("a", "claim-1", "claim-5", "claim-8", "claim-9");
    const settings = { name: "settings", emptyDir: {} };
    const [container] = pod.spec.containers;
    assert.ok(container !== undefined);
    const volumeMounts = [...(container.volumeMounts ?? []), { name: settings.name, mountPath: "/settings" }];
    driver.faults = { ...soundDriver, refuses: 1 };
    scene.cluster.want({
      ...pod,
      spec: {
        ...pod.spec,
        securityContext: { fsGroup: 2000 },
        containers: [{ ...container, volumeMounts }],
        volumes: [...(pod.spec.volumes ?? []), settings],
      },
    });
    await scene.pass(30_000);
    driver.faults = soundDriver;
    await scene.pass(120_000);
    assert.ok(scene.runs("uid-a"));
    driver.faults = { ...soundDriver, refuses: 1 };
    scene.cluster.delete("uid-a");
    await scene.pass(20_000);
    driver.faults = soundDriver;
    await scene.pass(120_000);
    assert.deepEqual(await scene.problems(), []);
    const seen = (family: string): ReadonlySet<string> => {
      const { samples = [] } = scene.registry.families().find(({ name }) => name === family) ?? {};
      return new Set(samples.map(({ labels }) => labels.join(" ").replace(stagingDriver.name, "DRIVER")));
    };
    const operations = seen("storage_operation_duration_seconds");
    const recorded = recordedOperations("hostpath.csi.k8s.io");
    assert.ok(recorded.length >= 9);
    for (const labels of recorded) assert.ok(operations.has(labels), `${labels} is not measured`);
    const local = "kubernetes.io/local-volume";
    for (const [plugin, operation] of [
      [local, "volume_mount"],
      [local, "map_volume"],
      [local, "volume_apply_access_control"],
      [local, "volume_unmount"],
      [local, "unmap_volume"],
      [local, "unmount_device"],
      [local, "unmap_device"],
      ["kubernetes.io/empty-dir", "volume_apply_access_control"],
      ["kubernetes.io/empty-dir", "verify_controller_attached_volume"],
      ["kubernetes.io/csi:DRIVER", "map_volume"],
    ] as const) {
      const labels = `${plugin} ${operation} success false`;
      assert.ok(operations.has(labels), `${labels} is not among ${[...operations].toSorted().join("\n")}`);
    }
    assert.deepEqual([...seen("volume_operation_total_seconds")].toSorted(), [
      "kubernetes.io/csi:DRIVER overall_volume_mount",
      "kubernetes.io/empty-dir overall_volume_mount",
      `${local} overall_volume_mount`,
    ]);
  });

  test("rejects a pod within a second after its driver's controller finds the node full, and no other", async () => {
    const scene = new DriverScene();
    const { clock, cluster } = scene;
    const { storage, server } = cluster;
    assert.ok(storage !== undefined);
    storage.limit(stagingDriver.name);
    scene.node.start();
    await scene.pass(30_000);
    cluster.want(podWithVolumes("early", "claim-2"));
    await scene.pass(20_000);
    storage.isFull = true;
    let fullAtMs: number | undefined;
    let rejectedAtMs: number | undefined;
    server.registry.store.onChange(({ resource, last }) => {
      const { attached, reason } = fieldsAt(last.value, "status");
      if (resource === "volumeattachments" && attached === false) fullAtMs ??= clock.nowMs;
      if (resource === "pods" && reason === "VolumeAttachmentLimitExceeded") rejectedAtMs ??= clock.nowMs;
    });
    cluster.want(podWithVolumes("late", "claim-1"));
    cluster.want(podWithVolumes("other", "claim-3"));
    await scene.pass(20_000);
    assert.ok(fullAtMs !== undefined && rejectedAtMs !== undefined);
    // The next look, and the write of the pod's status.
    assert.ok(rejectedAtMs - fullAtMs <= 1500, `rejected ${rejectedAtMs - fullAtMs} ms later`);
    assert.ok(scene.runs("uid-early") && scene.runs("uid-other") && !scene.runs("uid-late"));
    storage.isFull = false;
    cluster.delete("uid-late");
    await scene.pass(40_000);
    assert.deepEqual(await scene.problems(), []);
  });

  test("sets a waiting pod's volume up as soon as its driver's object says that it needs no attachment", async () => {
    const scene = new DriverScene();
    const { storage } = scene.cluster;
    assert.ok(storage !== undefined);
    const back = storage.withoutObject(plainDriver.name);
    scene.node.start();
    await scene.pass(30_000);
    scene.cluster.want(podWithVolumes("a", "claim-3"));
    await scene.pass(300_000);
    assert.deepEqual([scene.runs("uid-a"), storage.inUse.length], [false, 1]);
    back();
    await scene.pass(10_000);
    assert.deepEqual([scene.runs("uid-a"), storage.inUse.length], [true, 0]);
    assert.deepEqual(await scene.problems(), []);
  });

  test("does not reject a pod for the attempt that failed for the pod before it", async () => {
    const scene = new DriverScene();
    const { cluster } = scene;
    const { storage } = cluster;
    assert.ok(storage !== undefined);
    storage.limit(stagingDriver.name);
    storage.isFull = true;
    scene.node.start();
    cluster.want(podWithVolumes("a", "claim-1"));
    await scene.pass(30_000);
    assert.equal(fieldsAt(cluster.pod("uid-a")?.value ?? {}, "status")["reason"], "VolumeAttachmentLimitExceeded");
    storage.isFull = false;
    cluster.delete("uid-a");
    cluster.want(podWithVolumes("b", "claim-1"));
    await scene.pass(30_000);
    assert.ok(scene.runs("uid-b"));
    assert.deepEqual(await scene.problems(), []);
  });
});
