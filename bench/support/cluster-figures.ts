import { setTimeout as sleep } from "node:timers/promises";
import type { Cri } from "../../src/ports/cri.ts";
import { Label } from "../../src/runtime/labels.ts";
import type { BenchCluster } from "./cluster.ts";
import { hasCondition } from "./cluster.ts";
import type { Floor } from "./floor.ts";
import { progress } from "./report.ts";
import { killContainer, look, withRestarter } from "./restarts.ts";

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

/** Milliseconds from the kill of a container's process, one a pod, each its first restart. */
export interface RestartFigures {
  /** Until the runtime started the next instance, by its own record. */
  readonly floor: number[];
  readonly kubelet: number[];
  /** Until the API server showed that instance running. */
  readonly shown: number[];
}

export async function measureRestarts(
  cluster: BenchCluster,
  floor: Floor,
  names: readonly string[],
): Promise<RestartFigures> {
  const times: RestartFigures = { floor: [], kubelet: [], shown: [] };
  cluster.create(names, { restartPolicy: "Always" });
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  for (const name of names) {
    await sleep(pauseMs);
    const { started, shown } = await restartByKubelet(cluster, name);
    times.kubelet.push(started);
    times.shown.push(shown);
  }
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  times.floor.push(...(await cluster.besideFloor(() => restartsByFloor(cluster.cri, floor, names))));
  progress(`${names.length} restarts`);
  return times;
}

async function restartsByFloor(cri: Cri, floor: Floor, names: readonly string[]): Promise<number[]> {
  const pods = await floor.prepare(names.map((name) => `floor-${name}`));
  await floor.startAll(pods, 2, () => {});
  const times: number[] = [];
  await withRestarter(cri, floor, async (restarter) => {
    for (const pod of pods) {
      await sleep(pauseMs);
      times.push(await restarter.restart(pod));
    }
  });
  await floor.remove(pods);
  return times;
}

async function restartByKubelet(
  cluster: BenchCluster,
  name: string,
): Promise<{ readonly started: number; readonly shown: number }> {
  const filter = { labelSelector: { [Label.podName]: name } };
  const { containers } = await cluster.cri.runtime.listContainers({ filter });
  const killedAt = await killContainer(cluster.cri, containers[0]?.id ?? "");
  let next = "";
  const [seenAt = Number.NaN] = await cluster.times([name], (pod) => {
    const [container] = pod?.status?.containerStatuses ?? [];
    next = container?.containerID?.replace(/^.*:\/\//u, "") ?? "";
    return container?.restartCount === 1 && container.state.running !== undefined;
  });
  const { startedAt } = await look(cluster.cri, next);
  return { started: startedAt - killedAt, shown: performance.timeOrigin + seenAt - killedAt };
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
  const graves = (await floor?.bury(dead)) ?? [];
  cluster.create(names);
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  await sleep(calmMs);
  const [before, began] = [await cluster.usage(), performance.now()];
  await sleep(restMs);
  const after = await cluster.usage();
  const cpuPercent = ((after.cpuMs - before.cpuMs) / (performance.now() - began)) * 100;
  const figures = { pods: names.length, dead, cpuPercent, rssMiB: after.rssMiB };
  progress(restRow(figures));
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  await floor?.remove(graves);
  return figures;
}

export function restRow({ pods, dead, cpuPercent, rssMiB }: RestFigures): string {
  const beside = dead > 0 ? ` beside ${dead} dead containers` : "";
  return `at rest with ${pods} pods${beside}: ${cpuPercent.toFixed(2)} % of a core, RSS ${rssMiB.toFixed(0)} MiB`;
}
