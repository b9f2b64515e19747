import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { mkdir, open, statfs } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NodeObject } from "../../src/api/node.ts";
import { TestApiServer } from "../../test/apiserver/server.ts";
import { boundPod } from "../../test/support/bound-pod.ts";
import { ClusterNode } from "../../test/support/cluster-node.ts";
import { KubeletNode } from "../../test/support/kubelet-node.ts";
import { SmallDisk } from "../../test/support/small-disk.ts";
import { progress } from "./report.ts";

const mi = 1 << 20;
const diskMebibytes = 160;
const limitMebibytes = 40;
/** So fast the disk fills: the limit is reached after about half a minute. */
const stepBytes = mi;
const stepMs = 300;
const patienceMs = 60_000;

/** From the limit crossed to the victim's SIGTERM; milliseconds, one of each round. */
export async function measureEvictions(rounds: number): Promise<readonly number[]> {
  await using server = await TestApiServer.start();
  const node = await KubeletNode.open();
  using _disk = new SmallDisk(node.podwright.layout.kubeletRoot, diskMebibytes);
  try {
    await node.startContainerd("docker.io/library/busybox:latest");
    const cluster = new ClusterNode(server, node);
    const limits = ["--eviction-hard", `nodefs.available<${limitMebibytes}Mi`];
    const kubelet = await cluster.start(...limits, "--eviction-pressure-transition-period", "1s");
    await cluster.nodeReady();
    const times: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      times.push(await evictOnce(cluster, round));
      progress(`round ${round}: ${times.at(-1)?.toFixed(0)} ms`);
    }
    kubelet.child.kill("SIGTERM");
    await once(kubelet.child, "exit");
    return times;
  } finally {
    await node.podwright.cleanUp();
  }
}

async function evictOnce(cluster: ClusterNode, round: number): Promise<number> {
  const { admin } = cluster.server;
  const { kubeletRoot, stateDirectory } = cluster.node.podwright.layout;
  const name = `victim-${round}`;
  const out = join(stateDirectory, "out");
  await mkdir(out, { recursive: true });
  const told = join(out, name);
  const command = ["/bin/sh", "-c", `trap 'touch /out/${name}; exit 0' TERM; sleep 1000000 & wait`];
  const volumeMounts = [
    { name: "scratch", mountPath: "/scratch" },
    { name: "out", mountPath: "/out" },
  ];
  const volumes = [
    { name: "scratch", emptyDir: {} },
    { name: "out", hostPath: { path: out } },
  ];
  admin.create(boundPod(name, { command, volumeMounts }, { volumes }));
  await cluster.ready(name);
  const { uid = "" } = (admin.get("pods", `default/${name}`) as { metadata: { uid?: string } }).metadata;
  const crossedMs = await fill(
    join(kubeletRoot, "pods", uid, "volumes/kubernetes.io~empty-dir/scratch/fill"),
    kubeletRoot,
  );
  const untilMs = Date.now() + patienceMs;
  while (!existsSync(told)) {
    if (Date.now() > untilMs) throw new Error(`${name} was not evicted within ${patienceMs / 1000} s`);
    await sleep(20);
  }
  const evictedMs = statSync(told).mtimeMs;
  admin.delete("pods", `default/${name}`);
  await cluster.gone(name);
  const isFree = (object: unknown): boolean =>
    (object as NodeObject | undefined)?.status?.conditions?.find(({ type }) => type === "DiskPressure")?.status ===
    "False";
  await admin.until("nodes", "node1", isFree, patienceMs);
  return evictedMs - crossedMs;
}

/** Writes until less than the limit is available. @returns when it was, wall clock ms */
async function fill(path: string, disk: string): Promise<number> {
  await using file = await open(path, "w");
  const block = Buffer.alloc(stepBytes, 1);
  for (;;) {
    await file.write(block);
    const { bavail, bsize } = await statfs(disk);
    if (bavail * bsize < limitMebibytes * mi) return Date.now();
    await sleep(stepMs);
  }
}
