import { setTimeout as sleep } from "node:timers/promises";
import type { Cri } from "../../src/ports/cri.ts";
import { Label } from "../../src/runtime/config/labels.ts";
import type { BenchCluster } from "./cluster.ts";
import { hasCondition } from "./cluster.ts";
import type { Floor } from "./floor.ts";
import { progress } from "./report.ts";
import { killContainer, look, withRestarter } from "./restarts.ts";

/** Pause between two restarts, so that neither overlaps with the other's clean-up. */
const pauseMs = 700;

/** Milliseconds from the kill of a container's process, one per pod, each its first restart. */
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
