import { setTimeout as sleep } from "node:timers/promises";
import type { BenchCluster } from "./cluster.ts";
import { hasCondition } from "./cluster.ts";
import type { Floor } from "./floor.ts";
import { progress } from "./report.ts";

/** After each step, so that the next meets none of its clean-up. */
const settleMs = 700;
/** What a kubelet does once a second is met at another moment each time: parts of it that never repeat. */
const goldenRatio = 0.618_033_988_75;

/** Milliseconds, one a pod. */
export interface OneByOneFigures {
  readonly ready: number[];
  readonly gone: number[];
}

/** Pods that come and go one after another, while the kubelet has nothing else to do. */
export async function measureOneByOne(
  cluster: BenchCluster,
  floor: Floor,
  names: readonly string[],
): Promise<{ readonly floor: OneByOneFigures; readonly kubelet: OneByOneFigures }> {
  const kubelet: OneByOneFigures = { ready: [], gone: [] };
  for (const [index, name] of names.entries()) {
    await sleep(pauseMs(2 * index));
    let began = performance.now();
    cluster.create([name]);
    const [ready = Number.NaN] = await cluster.times([name], (pod) => hasCondition(pod, "Ready"));
    kubelet.ready.push(ready - began);
    await sleep(pauseMs(2 * index + 1));
    began = performance.now();
    cluster.delete([name]);
    const [gone = Number.NaN] = await cluster.times([name], (pod) => pod === undefined);
    kubelet.gone.push(gone - began);
  }
  progress(`${names.length} pods one by one`);
  return { floor: await cluster.besideFloor(() => oneByOneOfFloor(floor, names)), kubelet };
}

async function oneByOneOfFloor(floor: Floor, names: readonly string[]): Promise<OneByOneFigures> {
  const figures: OneByOneFigures = { ready: [], gone: [] };
  for (const name of names) {
    const pods = await floor.prepare([`floor-${name}`]);
    await sleep(settleMs);
    let began = performance.now();
    await floor.startAll(pods, 1, () => void figures.ready.push(performance.now() - began));
    await sleep(settleMs);
    began = performance.now();
    await floor.stopAll(pods, () => void figures.gone.push(performance.now() - began));
    await floor.remove(pods);
  }
  return figures;
}

function pauseMs(step: number): number {
  return settleMs + 1000 * ((step * goldenRatio) % 1);
}
