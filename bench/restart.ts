/**
 * A container exits: the time until its next instance runs, relative to a bare client that waits for the runtime's
 * event, creates and starts.
 *
 * restart.ts [--pods 30] [--containerd PATH] [--json]
 *
 * Each is the first restart of a fresh pod, so that no crash-loop back-off applies. Both are measured from the kill of
 * the container's process to the runtime's own `startedAt` of the next instance.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Cri } from "../src/ports/cri.ts";
import { Label } from "../src/runtime/config/labels.ts";
import { Floor } from "./support/floor.ts";
import { BenchNode, podManifest } from "./support/node.ts";
import { benchOptions } from "./support/options.ts";
import { type Container, killContainer, limitMs, look, type Restarter, withRestarter } from "./support/restarts.ts";
import { type Goal, printReport, progress } from "./support/report.ts";
import { summarize } from "./support/statistics.ts";

const goalRatio = 1.3;
/** Without runtime events podwright relists at this interval. */
const relistPeriodMs = 1_000;
const pollMs = 50;
/** Delay before polling for the next instance, so that polling does not slow it down. */
const quietMs = 400;
/** Pause between restarts: about a second, at random, so that relists are met at any phase. */
const settleMs = { least: 300, most: 1_300 };

/** Waits until the pod has another running container than that one. */
async function nextInstance(cri: Cri, find: () => Promise<readonly string[]>, former: string): Promise<Container> {
  const limit = performance.now() + limitMs;
  while (performance.now() < limit) {
    for (const id of await find()) {
      if (id === former) continue;
      const container = await look(cri, id);
      if (container.running) return container;
    }
    await sleep(pollMs);
  }
  throw new Error(`container ${former} was not restarted within ${limitMs / 1000} s`);
}

async function restartByPodwright(cri: Cri, uid: string): Promise<number> {
  const find = async (): Promise<string[]> => {
    const { containers } = await cri.runtime.listContainers({ filter: { labelSelector: { [Label.podUid]: uid } } });
    return containers.map((container) => container.id);
  };
  const [former = ""] = await find();
  const killedAt = await killContainer(cri, former);
  await sleep(quietMs);
  return (await nextInstance(cri, find, former)).startedAt - killedAt;
}

/**
 * containerd 1.7 sends each event to one subscriber only, and older ones have none: a client that subscribes would take
 * podwright's events away.
 */
function sharesEvents(runtime: string): boolean {
  return !/^containerd v?1\./.test(runtime);
}

async function measure(node: BenchNode, pods: number): Promise<{ floor: number[]; podwright: number[] }> {
  const times = { floor: [] as number[], podwright: [] as number[] };
  const floor = await Floor.open(node);
  const withFloor = sharesEvents(node.runtime);
  const names = Array.from({ length: pods }, (_, index) => `restart-${index}`);
  await node.apply(names.map((name) => podManifest(name)));
  const views = await node.waitForReady(...names);
  const floorPods = withFloor ? await floor.prepare(names.map((name) => `floor-${name}`)) : [];
  try {
    await floor.startAll(floorPods, 2, () => {});
    const takeTurns = async (restarter?: Restarter): Promise<void> => {
      for (const [index, view] of views.entries()) {
        const floorPod = floorPods[index];
        const turns = [
          async () => void times.podwright.push(await restartByPodwright(node.cri, view.uid)),
          async () => void (restarter && floorPod && times.floor.push(await restarter.restart(floorPod))),
        ];
        for (const turn of index % 2 === 0 ? turns : turns.reverse()) {
          await sleep(settleMs.least + Math.random() * (settleMs.most - settleMs.least));
          await turn();
        }
        const last = `podwright ${times.podwright.at(-1)?.toFixed(0)} ms, floor ${times.floor.at(-1)?.toFixed(0) ?? "-"} ms`;
        progress(`restart ${index + 1} of ${pods}: ${last}`);
      }
    };
    await (withFloor ? withRestarter(node.cri, floor, takeTurns) : takeTurns());
  } finally {
    await floor.remove(floorPods.filter((pod) => pod.sandboxId !== ""));
  }
  return times;
}

function goalsOf(times: { readonly floor: readonly number[]; readonly podwright: readonly number[] }): Goal[] {
  const podwright = summarize(times.podwright).median;
  if (times.floor.length === 0) {
    return [{ name: "median restart within the relist period", value: podwright, atMost: relistPeriodMs, unit: "ms" }];
  }
  const ratio = podwright / summarize(times.floor).median;
  return [{ name: "median restart", value: ratio, atMost: goalRatio, unit: "×" }];
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 1, pods: [30] });
  await using node = await BenchNode.start(options);
  const times: { floor: number[]; podwright: number[] } = { floor: [], podwright: [] };
  const pods = options.pods[0] ?? 30;
  // The first restart of each warms up the code.
  await measure(node, 1);
  await node.remove(["restart-0"]);
  for (let round = 0; round < options.rounds; round++) {
    const more = await measure(node, pods);
    times.floor.push(...more.floor);
    times.podwright.push(...more.podwright);
    await node.remove(Array.from({ length: pods }, (_, index) => `restart-${index}`));
  }
  const usage = await node.usage();
  const row = (name: string, series: readonly number[]): (string | number)[] => {
    const { count, min, median, p90, max } = summarize(series);
    return [name, count, min, median, p90, max];
  };
  printReport(
    {
      bench: "restart",
      setting: [
        `${node.runtime}; milliseconds from the exit of a container to the start of the next`,
        `podwright ${options.program}, RSS ${usage.rssMiB.toFixed(0)} MiB with ${pods} pods before`,
        ...(times.floor.length === 0
          ? ["no floor: this runtime has no events, or gives each to one listener only"]
          : []),
      ],
      columns: ["", "restarts", "min", "median", "p90", "max"],
      rows: [...(times.floor.length === 0 ? [] : [row("floor", times.floor)]), row("podwright", times.podwright)],
      goals: goalsOf(times),
      measurements: times,
    },
    options.json,
  );
}

await main();
