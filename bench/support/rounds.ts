import { setTimeout as sleep } from "node:timers/promises";
import { type BenchCluster, hasCondition } from "./cluster.ts";
import type { Floor } from "./floor.ts";
import { progress } from "./report.ts";

/** The best concurrency for the runtime alone on two cores; start.ts determines it in each run. */
export const floorAtOnce = 3;
const settleMs = 1_500;

/** Milliseconds from the beginning, one per pod. */
export interface Round {
  readonly started: readonly number[];
  readonly ready: readonly number[];
  readonly gone: readonly number[];
}

/** Pods that are created and deleted together. */
export interface Outcome {
  readonly pods: number;
  readonly floor: readonly Round[];
  readonly kubelet: readonly Round[];
}

let runs = 0;

/** Names that no pod of this bench had before. */
export function newNames(prefix: string, count: number): string[] {
  runs++;
  return Array.from({ length: count }, (_, index) => `${prefix}-${runs}-${index}`);
}

/** Ready equals Running: nothing is probed. */
export async function runFloor(cluster: BenchCluster, floor: Floor, count: number): Promise<Round> {
  return await cluster.besideFloor(() => runFloorAlone(floor, count));
}

async function runFloorAlone(floor: Floor, count: number): Promise<Round> {
  const pods = await floor.prepare(newNames("floor", count));
  const [started, gone]: [number[], number[]] = [[], []];
  let began = performance.now();
  await floor.startAll(pods, Math.min(count, floorAtOnce), () => void started.push(performance.now() - began));
  await sleep(settleMs);
  began = performance.now();
  await floor.stopAll(pods, () => void gone.push(performance.now() - began));
  await floor.remove(pods);
  await sleep(settleMs);
  return { started, ready: started, gone };
}

export async function runKubelet(cluster: BenchCluster, count: number): Promise<Round> {
  const names = newNames("pod", count);
  let began = performance.now();
  const since = (times: readonly number[]): number[] => times.map((time) => time - began);
  cluster.create(names);
  const [started, ready] = await Promise.all([
    cluster.times(names, (pod) => pod?.status?.phase === "Running"),
    cluster.times(names, (pod) => hasCondition(pod, "Ready")),
  ]);
  const [startedMs, readyMs] = [since(started), since(ready)];
  await sleep(settleMs);
  began = performance.now();
  cluster.delete(names);
  const goneMs = since(await cluster.times(names, (pod) => pod === undefined));
  await sleep(settleMs);
  return { started: startedMs, ready: readyMs, gone: goneMs };
}

/** Floor and kubelet alternate; each begins every other round. */
export async function measureRounds(
  cluster: BenchCluster,
  floor: Floor,
  pods: number,
  rounds: number,
): Promise<Outcome> {
  const outcome = { pods, floor: [] as Round[], kubelet: [] as Round[] };
  const turns = [
    async () => void outcome.floor.push(await runFloor(cluster, floor, pods)),
    async () => void outcome.kubelet.push(await runKubelet(cluster, pods)),
  ];
  for (let round = 0; round < rounds; round++) {
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
    const text = (one: Round | undefined): string =>
      one === undefined
        ? ""
        : `ready ${Math.max(...one.ready).toFixed(0)} ms, gone ${Math.max(...one.gone).toFixed(0)} ms`;
    progress(
      `${pods} pods, round ${round + 1}: floor ${text(outcome.floor.at(-1))}; kubelet ${text(outcome.kubelet.at(-1))}`,
    );
  }
  return outcome;
}
