import { startBareClient } from "./bare-process.ts";
import type { BenchCluster } from "./cluster.ts";
import { progress } from "./report.ts";

const takenPort = 39_271;
const ports = [{ containerPort: 80, hostPort: takenPort }];
const containers = [{ name: "app", image: "none", ports }];

/** Milliseconds from the creation of all pods until the API server has the status of each: one status per pod. */
export interface StatusFigures {
  readonly floor: number[];
  readonly kubelet: number[];
}

/**
 * The statuses of pods that are rejected for a host port conflict: nothing but the status is to be done. The floor is a
 * bare client that reports the same for as many pods of its own node.
 */
export async function measureStatuses(cluster: BenchCluster, names: readonly string[]): Promise<StatusFigures> {
  const floorNames = names.map((name) => `floor-${name}`);
  const floorNode = "floor-node";
  await using client = await startBareClient(cluster.layout, "bare-statuses", [
    await cluster.kubeconfigOf(floorNode),
    floorNode,
  ]);
  await client.ready();
  const floor = await failed(cluster, floorNames, floorNode);
  cluster.create(["taker"], { containers: [{ ...containers[0], imagePullPolicy: "Never" }] });
  await cluster.times(["taker"], (pod) => pod?.status?.phase === "Pending" && pod.status.startTime !== undefined);
  const kubelet = await failed(cluster, names);
  cluster.delete(["taker"]);
  await cluster.times(["taker"], (pod) => pod === undefined);
  progress(`${names.length} statuses`);
  return { floor, kubelet };
}

async function failed(cluster: BenchCluster, names: readonly string[], nodeName?: string): Promise<number[]> {
  const began = performance.now();
  cluster.create(names, { containers, ...(nodeName !== undefined && { nodeName }) });
  const times = await cluster.times(names, (pod) => pod?.status?.phase === "Failed");
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  return times.map((time) => time - began);
}
