import assert from "node:assert/strict";
import { existsSync, mkdirSync, statfsSync } from "node:fs";
import { request } from "node:http";
import { test } from "node:test";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Summary, VolumeStats } from "../../src/stats/summary-types.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "../support/bound-pod.ts";
import { type ClusterNode, withClusterNode } from "../support/cluster-node.ts";
import { makeDriverObject } from "../support/csi-claims.ts";
import { CsiDriver } from "../support/csi-driver.ts";
import { parseExposition, type Series } from "../support/exposition.ts";
import { HangingStorage, noHangingStorage } from "../support/hanging-storage.ts";
import { patience } from "../support/patience.ts";
import { until } from "../support/podwright.ts";

const settings = `
volumeStatsAggPeriod: 1s
featureGates: { CSIVolumeHealth: true }
`;

/** A claim of namespace default and the volume that it is bound to, of that source. */
function bind({ server }: ClusterNode, name: string, source: Fields): void {
  const accessModes = ["ReadWriteOnce"];
  const metadata = { name, namespace: "default" };
  const claim = server.admin.create({
    ...{ apiVersion: "v1", kind: "PersistentVolumeClaim", metadata },
    spec: { accessModes, resources: { requests: { storage: "1Mi" } }, volumeName: `pv-${name}` },
  });
  server.admin.create({
    ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: `pv-${name}` } },
    spec: {
      ...{ capacity: { storage: "1Mi" }, accessModes, claimRef: { ...metadata, uid: claim.metadata.uid ?? "" } },
      ...source,
    },
  });
  server.admin.patch(
    "persistentvolumeclaims",
    `default/${name}`,
    { status: { phase: "Bound" } },
    { subresource: "status" },
  );
}

function claimPod(name: string): Fields {
  const container = { image: DEMO_IMAGE, volumeMounts: [{ name: "data", mountPath: "/data" }] };
  return boundPod(name, container, { volumes: [{ name: "data", persistentVolumeClaim: { claimName: name } }] });
}

async function ask({ node }: ClusterNode, path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const outgoing = request({ socketPath: node.podwright.layout.engineSocket, path }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
    response.once("end", () => resolve(text));
  });
  outgoing.once("error", reject).end();
  return await promise;
}

async function seriesOf(cluster: ClusterNode, family: string): Promise<readonly Series[]> {
  const families = parseExposition(await ask(cluster, "/metrics"));
  return families.find(({ name }) => name === family)?.series ?? [];
}

async function figureOf(cluster: ClusterNode, family: string, claim: string): Promise<number | undefined> {
  const series = await seriesOf(cluster, `kubelet_volume_stats_${family}`);
  return series.find(({ labels }) => labels.get("persistentvolumeclaim") === claim)?.value;
}

/** All of a claim, by the ends of their names. */
async function figuresOf(cluster: ClusterNode, claim: string): Promise<Readonly<Record<string, number>>> {
  const prefix = "kubelet_volume_stats_";
  const families = parseExposition(await ask(cluster, "/metrics")).filter(({ name }) => name.startsWith(prefix));
  const own = families.flatMap(({ name, series }) => {
    const one = series.find(({ labels }) => labels.get("persistentvolumeclaim") === claim);
    return one === undefined ? [] : [[name.slice(prefix.length), one.value] as const];
  });
  return Object.fromEntries(own);
}

async function summaryVolume(cluster: ClusterNode, pod: string): Promise<VolumeStats | undefined> {
  const summary = JSON.parse(await ask(cluster, "/stats/summary")) as Summary;
  return summary.pods.find(({ podRef }) => podRef.name === pod)?.volume?.find(({ name }) => name === "data");
}

async function withDriver(cluster: ClusterNode, work: (driver: CsiDriver) => Promise<void>): Promise<void> {
  using temporary = testDirectory();
  const directory = temporary.path;
  await using driver = new CsiDriver({ root: cluster.node.podwright.layout.kubeletRoot, directory });
  makeDriverObject(cluster, driver.name);
  await driver.start();
  await work(driver);
}

test("volumes of claims are measured by their drivers and by statfs, with their health", async () => {
  await withClusterNode(
    async (cluster) => {
      await cluster.nodeReady();
      await withDriver(cluster, async (driver) => {
        const disk = cluster.node.podwright.path("disk");
        mkdirSync(disk);
        bind(cluster, "local", { local: { path: disk } });
        bind(cluster, "path", { hostPath: { path: disk } });
        bind(cluster, "far", { csi: { driver: driver.name, volumeHandle: "h" } });
        for (const name of ["local", "path", "far"]) cluster.server.admin.create(claimPod(name));
        for (const name of ["local", "path", "far"]) await cluster.ready(name);

        const isMeasured = async (): Promise<boolean> =>
          (await figureOf(cluster, "capacity_bytes", "local")) !== undefined &&
          (await figureOf(cluster, "health_status_abnormal", "far")) === 0;
        await until("the volumes to be measured", isMeasured, 20_000);
        const { bsize, blocks, files } = statfsSync(disk);
        for (const claim of ["local", "far"]) {
          assert.equal(await figureOf(cluster, "capacity_bytes", claim), bsize * blocks);
          assert.equal(await figureOf(cluster, "inodes", claim), files);
          // Of one answer: the next may be of another measurement.
          const { inodes_free: free = 0, inodes_used: used = 0, ...bytes } = await figuresOf(cluster, claim);
          assert.equal(free + used, files);
          assert.ok((bytes["used_bytes"] ?? 0) > 0 && (bytes["available_bytes"] ?? 0) > 0);
        }
        assert.equal(await figureOf(cluster, "capacity_bytes", "path"), undefined, "a host path is not measured");
        assert.equal(await figureOf(cluster, "health_status_abnormal", "local"), undefined);
        const volume = await summaryVolume(cluster, "far");
        assert.deepEqual(volume?.pvcRef, { name: "far", namespace: "default" });
        assert.deepEqual(volume.volumeHealthStats, { abnormal: false });
        assert.equal(volume.capacityBytes, bsize * blocks);
        assert.deepEqual((await summaryVolume(cluster, "local"))?.pvcRef, { name: "local", namespace: "default" });
        const [call] = driver.callsOf("NodeGetVolumeStats");
        assert.equal(call?.request["volumeId"], "h");
        assert.match(String(call?.request["volumePath"]), /\/volumes\/kubernetes\.io~csi\/pv-far\/mount$/u);

        driver.volumes.abnormal = "the disk is worn out";
        const isTold = async (): Promise<boolean> =>
          cluster.server.admin.list("events").some((event) => {
            const { reason, type, message } = event as unknown as Readonly<Record<string, unknown>>;
            const isSo = reason === "VolumeConditionAbnormal" && type === "Warning";
            return isSo && message === "Volume data: the disk is worn out";
          });
        await until("the Event", isTold, 20_000);
        assert.equal(await figureOf(cluster, "health_status_abnormal", "far"), 1);
        assert.deepEqual((await summaryVolume(cluster, "far"))?.volumeHealthStats, { abnormal: true });
        for (const name of ["local", "path", "far"]) cluster.server.admin.delete("pods", `default/${name}`);
        for (const name of ["local", "path", "far"]) await cluster.gone(name);
        assert.deepEqual(await seriesOf(cluster, "kubelet_volume_stats_capacity_bytes"), []);
      });
    },
    DEMO_IMAGE,
    settings,
  );
});

test("storage that hangs delays only its own pod, and is named", { skip: noHangingStorage ?? false }, async () => {
  await withClusterNode(
    async (cluster) => {
      await cluster.nodeReady();
      const { server, node } = cluster;
      const { podwright } = node;
      using hanging = new HangingStorage(podwright.path("hanging"));
      await withDriver(cluster, async (driver) => {
        const disk = podwright.path("disk");
        mkdirSync(disk);
        bind(cluster, "near", { local: { path: disk } });
        bind(cluster, "far", { csi: { driver: driver.name, volumeHandle: "h" } });
        for (const name of ["near", "far"]) server.admin.create(claimPod(name));
        for (const name of ["near", "far"]) await cluster.ready(name);
        await until("figures", async () => (await figureOf(cluster, "used_bytes", "far")) !== undefined, 20_000);

        // Its server is dead: more pods wait for it than podwright has threads for files.
        const stuck = Array.from({ length: 6 }, (_, index) => `stuck-${index}`);
        const volumes = [{ name: "data", hostPath: { path: hanging.path, type: "Directory" } }];
        const container = { image: DEMO_IMAGE, volumeMounts: [{ name: "data", mountPath: "/data" }] };
        for (const name of stuck) server.admin.create(boundPod(name, container, { volumes }));
        using _silence = driver.hang("NodeGetVolumeStats");
        using unpublishing = driver.hang("NodeUnpublishVolume");
        const says = `the file system at '${hanging.path}'`;
        const isSaid = async (): Promise<boolean> =>
          server.admin.list("events").some((event) => JSON.stringify(event).includes(says));
        await until("the Event FailedMount", isSaid, 30_000);

        server.admin.create(claimPod("near2"));
        bind(cluster, "near2", { local: { path: disk } });
        await cluster.ready("near2");
        const beganMs = performance.now();
        assert.ok((await ask(cluster, "/metrics")).includes("kubelet_volume_stats_used_bytes"));
        assert.notEqual(await summaryVolume(cluster, "near"), undefined);
        assert.ok(performance.now() - beganMs < 4_000 * patience, "neither metrics nor the summary wait");

        server.admin.delete("pods", "default/far");
        const isNamed = async (): Promise<boolean> => {
          const series = await seriesOf(cluster, "podwright_volume_silent_seconds");
          const operations = series.map(({ labels }) => `${labels.get("volume")} ${labels.get("operation")}`);
          return operations.includes("pv-far tear_down");
        };
        await until("the volume to be named", isNamed, 60_000);
        const doctor = (await podwright.run(["doctor"])).stdout;
        assert.match(doctor, /volume pv-far \(test\.csi\.example\.org\) of pod default\/far: its teardown has taken/u);
        assert.match(doctor, /test\.csi\.example\.org has not answered NodeUnpublishVolume of h for \d+ s/u);
        const why = await podwright.succeed("why", "far");
        assert.match(why, /^Terminating: it has stopped: volume pv-far \(\S+\) does not answer/u);
        await cluster.nodeReady();

        unpublishing[Symbol.dispose]();
        await cluster.gone("far");
        assert.deepEqual(
          (await seriesOf(cluster, "podwright_volume_silent_seconds")).filter(
            ({ labels }) => labels.get("volume") === "pv-far",
          ),
          [],
        );
        const finalizers = ["example.org/keep"];
        server.admin.patch("pods", "default/near2", { metadata: { finalizers } });
        server.admin.delete("pods", "default/near2");
        const isKept = async (): Promise<boolean> =>
          (await podwright.succeed("why", "near2")).includes("finalizers keep it at the API server: example.org/keep");
        await until("why to name the finalizer", isKept, 30_000);
        server.admin.patch("pods", "default/near2", { metadata: { finalizers: null } });

        for (const name of [...stuck, "near"]) server.admin.delete("pods", `default/${name}`);
        for (const name of [...stuck, "near", "near2"]) await cluster.gone(name);
        assert.ok(existsSync(disk));
      });
    },
    DEMO_IMAGE,
    settings,
  );
});
