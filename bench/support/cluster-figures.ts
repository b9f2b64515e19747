import { setTimeout as sleep } from "node:timers/promises";
import { Label } from "../../src/runtime/labels.ts";
import type { BenchCluster } from "./cluster.ts";
import { hasCondition } from "./cluster.ts";
import { type Floor, watchExits } from "./floor.ts";
import { progress } from "./report.ts";
import { killContainer, Restarter } from "./restarts.ts";

const calmMs = 15_000;
const restMs = 60_000;
/** Between two restarts, so that neither meets the other's clean-up. */
const pauseMs = 700;
const takenPort = 39_271;

/** What the kubelet takes while nothing happens. */
export interface RestFigures {
  readonly pods: number;
  readonly dead: number;
  readonly cpuPercent: number;
  readonly rssMiB: number;
}

/**
 * From the kill of a container's process until its next instance runs, as the API server (kubelet) or the runtime
 * (floor) tells; milliseconds, one a pod, each its first restart.
 */
export async function measureRestarts(
  cluster: BenchCluster,
  floor: Floor,
  names: readonly string[],
): Promise<{ readonly floor: number[]; readonly kubelet: number[] }> {
  const times = { floor: [] as number[], kubelet: [] as number[] };
  cluster.create(names, { restartPolicy: "Always" });
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  const floorPods = await floor.prepare(names.map((name) => `floor-${name}`));
  const watching = new AbortController();
  const restarter = new Restarter(cluster.cri, floor);
  await floor.startAll(floorPods, 2, () => {});
  const watched = watchExits(cluster.cri, watching.signal, (id) => restarter.exited(id));
  for (const [index, name] of names.entries()) {
    await sleep(pauseMs);
    times.kubelet.push(await restartByKubelet(cluster, name));
    await sleep(pauseMs);
    const pod = floorPods[index];
    if (pod !== undefined) times.floor.push(await restarter.restart(pod));
  }
  watching.abort();
  await watched;
  await floor.remove(floorPods);
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  progress(`${names.length} restarts`);
  return times;
}

async function restartByKubelet(cluster: BenchCluster, name: string): Promise<number> {
  const filter = { labelSelector: { [Label.podName]: name } };
  const { containers } = await cluster.cri.runtime.listContainers({ filter });
  const killedAt = await killContainer(cluster.cri, containers[0]?.id ?? "");
  const [seenAt = Number.NaN] = await cluster.times([name], (pod) => {
    const [container] = pod?.status?.containerStatuses ?? [];
    return container?.restartCount === 1 && container.state.running !== undefined;
  });
  return performance.timeOrigin + seenAt - killedAt;
}

/** Milliseconds until the statuses of pods that are refused, all for a host port that is taken, are at the API server. */
export async function measureStatuses(cluster: BenchCluster, names: readonly string[]): Promise<number> {
  const ports = [{ containerPort: 80, hostPort: takenPort }];
  const containers = [{ name: "app", image: "none", ports }];
  cluster.create(["taker"], { containers: [{ ...containers[0], imagePullPolicy: "Never" }] });
  await cluster.times(["taker"], (pod) => pod?.status?.phase === "Pending" && pod.status.startTime !== undefined);
  const began = performance.now();
  cluster.create(names, { containers });
  const times = await cluster.times(names, (pod) => pod?.status?.phase === "Failed");
  const tookMs = Math.max(...times) - began;
  cluster.delete(["taker", ...names]);
  await cluster.times(["taker", ...names], (pod) => pod === undefined);
  progress(`${names.length} statuses`);
  return tookMs;
}

/** @param floor makes so many dead containers first, which belong to no pod of the kubelet */
export async function measureRest(
  cluster: BenchCluster,
  names: readonly string[],
  dead: number,
  floor?: Floor,
): Promise<RestFigures> {
  const grave = dead === 0 || floor === undefined ? undefined : await floor.bury(dead);
  cluster.create(names);
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  await sleep(calmMs);
  const [before, began] = [await cluster.usage(), performance.now()];
  await sleep(restMs);
  const after = await cluster.usage();
  const cpuPercent = ((after.cpuMs - before.cpuMs) / (performance.now() - began)) * 100;
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  if (grave !== undefined) await floor?.remove([grave]);
  progress(`rest with ${names.length} pods and ${dead} dead containers`);
  return { pods: names.length, dead, cpuPercent, rssMiB: after.rssMiB };
}
