import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { connectCri } from "../../src/cri/client.ts";
import { systemClock } from "../../src/linux/processes/clock.ts";
import type { NodeObject } from "../../src/api/node.ts";
import type { PodStatus } from "../../src/api/status.ts";
import { TestApiServer } from "../apiserver/server.ts";
import { ClusterNode } from "./cluster-node.ts";
import { KubeletNode } from "./kubelet-node.ts";
import { sleep, until } from "./podwright.ts";
import { Registry } from "./registry.ts";

const image = "docker.io/library/busybox:latest";

/** What a disk of a node shall be. */
export interface DiskNode {
  /** Mounts its disks. */
  readonly prepare: (node: KubeletNode) => Disposable;
  /** Flags of the kubelet. */
  readonly flags: readonly string[];
}

/** Passes a node of a cluster with small disks to the work, and cleans up in any case. */
export async function withDiskNode(
  { prepare, flags }: DiskNode,
  work: (cluster: ClusterNode) => Promise<void>,
): Promise<void> {
  await using server = await TestApiServer.start();
  const node = await KubeletNode.open();
  using _disks = prepare(node);
  try {
    await node.startContainerd(image);
    const cluster = new ClusterNode(server, node);
    await cluster.start("--eviction-pressure-transition-period", "1s", ...flags);
    await cluster.nodeReady();
    await work(cluster);
  } catch (error) {
    console.error(await node.podwright.evidence());
    throw error;
  } finally {
    await node.podwright.cleanUp();
  }
}

/** Waits for the pod's eviction. @returns its status */
export async function evictedPod(cluster: ClusterNode, name: string): Promise<PodStatus> {
  await until(`pod ${name} to be evicted`, async () => cluster.status(name).phase === "Failed", 60_000);
  const status = cluster.status(name);
  assert.equal(status.reason, "Evicted", JSON.stringify(status));
  return status;
}

/** containerd frees removed layers a moment later: until then pressure may return. */
const freedMs = 5000;

/** Waits until the node reports that its disks have room again, for some seconds, and admits pods. */
export async function diskIsFree({ server: { admin } }: ClusterNode): Promise<void> {
  const isFree = (node: unknown): boolean =>
    (node as NodeObject | undefined)?.status?.conditions?.find(({ type }) => type === "DiskPressure")?.status ===
    "False";
  do {
    await admin.until("nodes", "node1", isFree, 60_000);
    await sleep(freedMs);
  } while (!isFree(admin.get("nodes", "node1")));
}

/** Pulls an image of random content, which no pod uses, from a registry of its own. @returns its name */
export async function pullUnused({ podwright }: KubeletNode, bytes: number): Promise<string> {
  await using registry = await Registry.start();
  using cri = connectCri(podwright.layout.containerd.endpoint, systemClock);
  const name = await registry.push("team/unused", "1", randomBytes(bytes));
  await cri.images.pullImage({ image: { image: name } }, {});
  return name;
}

/** The names of all images in the runtime. */
export async function imageNames({ podwright }: KubeletNode): Promise<readonly string[]> {
  using cri = connectCri(podwright.layout.containerd.endpoint, systemClock);
  return (await cri.images.listImages({}, {})).images.flatMap(({ repoTags }) => repoTags);
}
