import { setTimeout as sleep } from "node:timers/promises";
import type { BenchCluster } from "./cluster.ts";
import { hasCondition } from "./cluster.ts";
import type { Floor } from "./floor.ts";
import { progress } from "./report.ts";

/** After each step, so that the next one does not overlap with its clean-up. */
const settleMs = 700;
/** Distributes steps over the second of a kubelet's periodic work without repetition. */
const goldenRatio = 0.618_033_988_75;

/**
 * `apart`: steps at different moments of the kubelet's second. `back to back`: each as soon as the previous one is
 * visible, as in a script; a kubelet that checks its pods once a second has then just done so.
 */
export type Pace = "apart" | "back to back";

/** Milliseconds, one per pod. */
export interface OneByOneFigures {
  readonly ready: number[];
  readonly gone: number[];
}

/** Single pods, each created and deleted before the next, on an otherwise idle kubelet. */
export async function measureOneByOne(
  cluster: BenchCluster,
  floor: Floor,
  names: readonly string[],
  pace: Pace,
): Promise<{ readonly floor: OneByOneFigures; readonly kubelet: OneByOneFigures }> {
  const kubelet: OneByOneFigures = { ready: [], gone: [] };
  for (const [index, name] of names.entries()) {
    if (pace === "apart") await sleep(pauseMs(2 * index));
    let began = performance.now();
    cluster.create([name]);
    const [ready = Number.NaN] = await cluster.times([name], (pod) => hasCondition(pod, "Ready"));
    kubelet.ready.push(ready - began);
    if (pace === "apart") await sleep(pauseMs(2 * index + 1));
    began = performance.now();
    cluster.delete([name]);
    const [gone = Number.NaN] = await cluster.times([name], (pod) => pod === undefined);
    kubelet.gone.push(gone - began);
  }
  progress(`${names.length} pods one by one, ${pace}`);
  return { floor: await cluster.besideFloor(() => oneByOneOfFloor(floor, names, pace)), kubelet };
}

async function oneByOneOfFloor(floor: Floor, names: readonly string[], pace: Pace): Promise<OneByOneFigures> {
  const figures: OneByOneFigures = { ready: [], gone: [] };
  const restMs = pace === "apart" ? settleMs : 0;
  for (const name of names) {
    const pods = await floor.prepare([`floor-${name}`]);
    await sleep(restMs);
    let began = performance.now();
    await floor.startAll(pods, 1, () => void figures.ready.push(performance.now() - began));
    await sleep(restMs);
    began = performance.now();
    await floor.stopAll(pods, () => void figures.gone.push(performance.now() - began));
    await floor.remove(pods);
  }
  return figures;
}

function pauseMs(step: number): number {
  return settleMs + 1000 * ((step * goldenRatio) % 1);
}
