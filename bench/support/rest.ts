import { setTimeout as sleep } from "node:timers/promises";
import { startBareClient } from "./bare-process.ts";
import type { BenchCluster } from "./cluster.ts";
import { hasCondition } from "./cluster.ts";
import type { Floor } from "./floor.ts";
import { progress } from "./report.ts";
import { type Rest, type RestFigures, restFor, restName } from "./rest-figures.ts";

/** By then garbage of earlier pods is collected: it does not belong to rest. */
const calmMs = 60_000;
const restMs = 60_000;

/**
 * Rest with each number of pods. The floor is a bare client in its own process during the same minute: it keeps the
 * runtime's event stream open and lists sandboxes and containers as often as podwright.
 * @param newNames for this many pods
 */
export async function measureRests(
  cluster: BenchCluster,
  counts: readonly number[],
  newNames: (count: number) => readonly string[],
  dead = 0,
): Promise<RestFigures[]> {
  const figures: RestFigures[] = [];
  for (const count of counts) {
    const one = await measureRest(cluster, newNames(count), dead);
    const text = ({ cpuPercent, rssMiB }: Rest): string => `${cpuPercent.toFixed(2)} %, ${rssMiB.toFixed(0)} MiB`;
    progress(`${restName(one)}: floor ${text(one.floor)}; kubelet ${text(one.kubelet)}`);
    figures.push(one);
  }
  return figures;
}

/** The same beside dead containers, which are the floor's. */
export async function measureRestsBesideDead(
  cluster: BenchCluster,
  floor: Floor,
  dead: number,
  counts: readonly number[],
  newNames: (count: number) => readonly string[],
): Promise<RestFigures[]> {
  const graves = await floor.bury(dead);
  progress(`${dead} dead containers`);
  const figures = await measureRests(cluster, counts, newNames, dead);
  await floor.remove(graves);
  return figures;
}

async function measureRest(cluster: BenchCluster, names: readonly string[], dead: number): Promise<RestFigures> {
  cluster.create(names);
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  const { floor, kubelet } = await restOfBoth(cluster);
  cluster.delete(names);
  await cluster.times(names, (pod) => pod === undefined);
  return { pods: names.length, dead, floor, kubelet };
}

async function restOfBoth(cluster: BenchCluster): Promise<Pick<RestFigures, "floor" | "kubelet">> {
  await using client = await startBareClient(cluster.layout, "bare-rest", [cluster.layout.containerd.endpoint]);
  await client.ready();
  await sleep(calmMs);
  const [floor, kubelet] = await Promise.all([
    restFor(restMs, async () => await client.usage()),
    restFor(restMs, async () => await cluster.usage()),
  ]);
  return { floor, kubelet };
}
