import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { testDirectory } from "../../src/linux/processes/testing.ts";
import { systemMounts } from "../../src/linux/files/mounts.ts";
import { DEMO_IMAGE } from "../../src/private-runtime/built-in-images.ts";
import type { Fields } from "../apiserver/objects.ts";
import { boundPod } from "./bound-pod.ts";
import { type ClusterNode, withClusterNode } from "./cluster-node.ts";
import type { RunningCommand } from "./command.ts";
import {
  deleted,
  grow,
  grown,
  loopDevicesOver,
  makeClaim,
  makeDriverObject,
  volumesInUse,
  withoutLoopDevices,
} from "./csi-claims.ts";
import { type CallMoment, CsiDriver, type StoppedCall } from "./csi-driver.ts";
import { until } from "./podwright.ts";

/** `grown` ones are larger before their pod starts, `growing` ones while it runs. */
type Kind = "claim" | "block" | "inline" | "grown" | "growing";

/** A call of a pod's start or end, and where in it podwright is killed. */
export interface KillPoint {
  readonly kind: Kind;
  readonly method: string;
  readonly moment: CallMoment;
}

const staged = ["NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume"];
const methods: Readonly<Record<Kind, readonly string[]>> = {
  claim: staged,
  block: staged,
  inline: ["NodePublishVolume", "NodeUnpublishVolume"],
  grown: ["NodeExpandVolume"],
  growing: ["NodeExpandVolume"],
};
const moments: readonly CallMoment[] = ["before", "after", "answered"];

/** Every call that a driver gets for a volume, killed before, after and behind it. */
export const killPoints: readonly KillPoint[] = (Object.keys(methods) as Kind[]).flatMap((kind) =>
  methods[kind].flatMap((method) => moments.map((moment) => ({ kind, method, moment }))),
);

/**
 * Kills podwright, or ends the driver, at each of the points, each time with a new pod, and expects that the pod starts and
 * ends all the same.
 */
export async function surviveEndsAtCalls(ends: Ending, points: readonly KillPoint[]): Promise<void> {
  await withClusterNode(async (cluster, first) => {
    await cluster.nodeReady();
    using temporary = testDirectory();
    const directory = temporary.path;
    const root = cluster.node.podwright.layout.kubeletRoot;
    await using driver = new CsiDriver({ root, directory });
    using _loops = withoutLoopDevices(root);
    makeDriverObject(cluster, driver.name);
    await driver.start();
    for (const kind of ["claim", "block", "grown", "growing"] as const) {
      makeClaim(cluster, kind, driver.name, { volumeMode: kind === "block" ? "Block" : "Filesystem" });
    }
    let kubelet = first;
    for (const [index, point] of points.entries()) {
      const { kind, method, moment } = point;
      try {
        kubelet = await survive({ cluster, driver, kubelet, ends }, point, index);
        assert.deepEqual(driver.violations, []);
      } catch (error) {
        throw new Error(`${ends} ended ${moment} ${method} of the ${kind} volume`, { cause: error });
      }
    }
  }, DEMO_IMAGE);
}

/** What ends at a call. */
export type Ending = "podwright" | "driver";

interface Scene {
  readonly ends: Ending;
  readonly cluster: ClusterNode;
  readonly driver: CsiDriver;
  readonly kubelet: RunningCommand;
}

async function survive(scene: Scene, { kind, method, moment }: KillPoint, index: number): Promise<RunningCommand> {
  const { cluster, driver } = scene;
  const name = `${kind}-${index}`;
  const isEnd = method.startsWith("NodeUn");
  const size = `${index + 2}Gi`;
  if (kind === "grown") grow(cluster, kind, size);
  const create = (): unknown => cluster.server.admin.create(podOf(kind, name, driver.name));
  const isRunning = isEnd || kind === "growing";
  if (isRunning) {
    create();
    await cluster.ready(name);
  }
  const stop = driver.stopAt(method, moment);
  if (isEnd) cluster.server.admin.delete("pods", `default/${name}`);
  else if (isRunning) grow(cluster, kind, size);
  else create();
  await stop.reached;
  const kubelet = await ended(scene, stop);
  if (!isEnd) {
    await cluster.ready(name);
    if (kind === "grown" || kind === "growing") await grown(cluster, kind, size);
    await deleted(cluster, name);
  }
  await cluster.server.admin.until("pods", `default/${name}`, (object) => object === undefined, 30_000);
  await until("everything to be taken back", async () => driver.volumes.isIdle);
  await nothingLeft(cluster, driver);
  return kubelet;
}

/** @returns the kubelet that goes on */
async function ended({ ends, kubelet, driver, cluster }: Scene, stop: StoppedCall): Promise<RunningCommand> {
  if (ends === "driver") {
    await driver.restartAt(stop);
    return kubelet;
  }
  kubelet.child.kill("SIGKILL");
  await kubelet.ended;
  stop.release();
  return await cluster.start();
}

function podOf(kind: Kind, name: string, driver: string): Fields {
  const inline = { name: "d", csi: { driver } };
  const claimed = { name: "d", persistentVolumeClaim: { claimName: kind } };
  const volumes = [kind === "inline" ? inline : claimed];
  const container =
    kind === "block"
      ? { volumeDevices: [{ name: "d", devicePath: "/dev/disk" }] }
      : { volumeMounts: [{ name: "d", mountPath: "/data" }] };
  return boundPod(name, container, { volumes, securityContext: { fsGroup: 2000 } });
}

async function nothingLeft(cluster: ClusterNode, driver: CsiDriver): Promise<void> {
  const root = cluster.node.podwright.layout.kubeletRoot;
  const left = async (): Promise<readonly string[]> => {
    const mounts = (await systemMounts.below(root)).map(({ target }) => target);
    const volumes = mounts.filter((target) => target.includes("kubernetes.io"));
    const stagings = join(root, "plugins/kubernetes.io/csi", driver.name);
    const directories = existsSync(stagings) ? readdirSync(stagings) : [];
    const inUse = volumesInUse(cluster) as readonly string[] | undefined;
    return [...volumes, ...directories, ...loopDevicesOver(root), ...(inUse ?? [])];
  };
  let last: readonly string[] = [];
  await until("nothing to be left", async () => (last = await left()).length === 0).catch((error: unknown) => {
    throw new Error(`left: ${last.join(", ")}`, { cause: error });
  });
}
