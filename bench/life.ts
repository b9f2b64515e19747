/**
 * Pods with an init container and two probes each: podwright's time until all are Ready relative to the same CRI calls
 * made directly, and podwright's cost at rest.
 *
 * life.ts [--pods 100] [--rounds 3] [--containerd PATH] [--json]
 */
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { PodManifest } from "../src/api/pod.ts";
import { Floor, type FloorPod, watchExits } from "./support/floor.ts";
import { BenchNode, podManifest, serving } from "./support/node.ts";
import { benchOptions } from "./support/options.ts";
import { printReport, progress } from "./support/report.ts";
import { type Rest, restFor } from "./support/rest-figures.ts";
import { median } from "./support/statistics.ts";

const goalRatio = 1.25;
/** The Go kubelet's cost at rest with 50 pods of one container without probes. */
const goKubelet = { pods: 50, cpuPercent: 3.3 };
const parallelisms = [2, 3, 4, 6];
const restMs = 60_000;
/** From the last change to the beginning of the rest. */
const calmMs = 15_000;
const settleMs = 2_000;

let runs = 0;

function newNames(prefix: string, count: number): string[] {
  runs++;
  return Array.from({ length: count }, (_, index) => `${prefix}-${runs}-${index}`);
}

/** An init container that exits at once, and a container with a readiness and a liveness probe over HTTP and TCP. */
function richManifest(name: string): PodManifest {
  const plain = podManifest(name);
  const [app] = plain.spec.containers;
  if (app === undefined) throw new Error("a pod without a container");
  return {
    ...plain,
    spec: {
      ...plain.spec,
      initContainers: [{ ...app, name: "init", command: ["/bin/true"] }],
      containers: [
        {
          ...app,
          ...serving,
          livenessProbe: { tcpSocket: { port: 80 }, periodSeconds: 10 },
        },
      ],
    },
  };
}

/** Milliseconds until all run, by direct calls. */
async function runFloor(node: BenchNode, floor: Floor, count: number, atOnce: number): Promise<number> {
  const waiting = new Map<string, () => void>();
  const watching = new AbortController();
  const watch = watchExits(node.cri, watching.signal, (id) => waiting.get(id)?.());
  const ended = (id: string): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(id, resolve);
    return promise;
  };
  const pods: FloorPod[] = await floor.prepare(newNames("floor", count));
  await sleep(100);
  const began = performance.now();
  await floor.startAll(
    pods,
    atOnce,
    () => {},
    (pod) => floor.startWithInit(pod, ended),
  );
  const tookMs = performance.now() - began;
  watching.abort();
  await watch;
  await floor.remove(pods);
  await sleep(settleMs);
  return tookMs;
}

/** Milliseconds until all pods are Ready. They are kept. */
async function startAll(node: BenchNode, manifests: readonly PodManifest[]): Promise<number> {
  const waiting = new Set(manifests.map(({ metadata }) => metadata.name));
  const following = new AbortController();
  const { journalSeq } = await node.engine.health();
  const watching = (async () => {
    for await (const entry of node.engine.follow({ sinceSeq: journalSeq + 1 }, following.signal)) {
      if (entry.what !== "ContainerStateChanged" || !entry.message.endsWith("running and ready")) continue;
      waiting.delete(entry.pod?.name ?? "");
      if (waiting.size === 0) return;
    }
  })();
  // The journal request is being answered.
  await sleep(50);
  const began = performance.now();
  await node.apply(manifests);
  await watching;
  following.abort();
  return performance.now() - began;
}

async function rest(node: BenchNode): Promise<Rest> {
  await sleep(calmMs);
  return await restFor(restMs, async () => await node.usage());
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 3, pods: [100] });
  const loadBefore = loadavg()[0] ?? 0;
  await using node = await BenchNode.start(options);
  const floor = await Floor.open(node);
  await runFloor(node, floor, 4, 2);
  const plain = newNames("plain", goKubelet.pods);
  await startAll(
    node,
    plain.map((name) => podManifest(name)),
  );
  progress(`${goKubelet.pods} plain pods run; resting`);
  const plainRest = await rest(node);
  await node.remove(plain);

  const outcomes = [];
  for (const count of options.pods) {
    const calibration: Record<number, number> = {};
    for (const atOnce of parallelisms) calibration[atOnce] = await runFloor(node, floor, count, atOnce);
    const best = Object.entries(calibration).toSorted(([, a], [, b]) => a - b)[0];
    const atOnce = Number(best?.[0] ?? 1);
    const series = { floor: [] as number[], podwright: [] as number[] };
    let last: string[] = [];
    for (let round = 0; round < options.rounds; round++) {
      if (last.length > 0) await node.remove(last);
      series.floor.push(await runFloor(node, floor, count, atOnce));
      last = newNames("rich", count);
      series.podwright.push(await startAll(node, last.map(richManifest)));
      progress(
        `${count} pods: floor ${series.floor.at(-1)?.toFixed(0)} ms, podwright ${series.podwright.at(-1)?.toFixed(0)} ms`,
      );
    }
    const atRest = await rest(node);
    await node.remove(last);
    outcomes.push({ pods: count, atOnce, calibration, ...series, atRest });
  }
  const ratio = ({ floor: made, podwright }: { floor: number[]; podwright: number[] }): number =>
    median(podwright) / median(made);
  printReport(
    {
      bench: "life",
      setting: [
        `${node.runtime}; medians of ${options.rounds} alternating runs; load before ${loadBefore.toFixed(1)}`,
        `each pod: an init container, a readiness probe each second, a liveness probe each 10 s`,
        `at rest for ${restMs / 1000} s with ${goKubelet.pods} pods of one container without probes: ` +
          `${plainRest.cpuPercent.toFixed(1)} % of a core, RSS ${plainRest.rssMiB.toFixed(0)} MiB`,
      ],
      columns: ["pods", "floor at once", "floor all run", "all Ready", "ratio", "% of a core at rest", "RSS MiB"],
      rows: outcomes.map((outcome) => [
        outcome.pods,
        outcome.atOnce,
        median(outcome.floor),
        median(outcome.podwright),
        ratio(outcome).toFixed(2),
        outcome.atRest.cpuPercent.toFixed(1),
        outcome.atRest.rssMiB,
      ]),
      goals: [
        ...outcomes.map((outcome) => {
          const name = `${outcome.pods} pods with an init container, all Ready`;
          return { name, value: ratio(outcome), atMost: goalRatio, unit: "×" as const };
        }),
        {
          name: `${goKubelet.pods} pods at rest, CPU (the Go kubelet's is the goal)`,
          value: plainRest.cpuPercent,
          atMost: goKubelet.cpuPercent,
          unit: "%" as const,
        },
      ],
      measurements: { outcomes, plainRest },
    },
    options.json,
  );
}

await main();
