/**
 * Pods that have ended and that the API server keeps, with one dead container each: their cost beside running pods.
 * While they are created and end, at rest, for the start of another pod, and after a restart of the agent.
 *
 * ended.ts [--ended 1000,5000] [--pods 50] [--json] …
 *
 * The runtime is the tests' simulated one behind a real socket, so that 5,000 containers cost the machine nothing else.
 */
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { behaviourCommand } from "../src/sim/behaviour.ts";
import { startTestRuntime } from "./support/bench-runtime.ts";
import { BenchCluster, hasCondition } from "./support/cluster.ts";
import { podManifest } from "./support/node.ts";
import { benchOptions, counts, type OwnOptions } from "./support/options.ts";
import { printReport, progress } from "./support/report.ts";
import { type Rest, restFor } from "./support/rest-figures.ts";
import { newNames } from "./support/rounds.ts";
import { median } from "./support/statistics.ts";

const atOnce = 100;
const startedAlone = 10;
const pauseMs = 1_000;
const calmMs = 60_000;
const restMs = 60_000;

interface EndedOptions {
  /** Numbers of ended pods, ascending. */
  readonly ended: readonly number[];
}

const endedOptions: OwnOptions<EndedOptions> = {
  options: { ended: { type: "string", default: "1000,5000" } },
  usage: `  --ended N[,N…]      how many pods have ended, rising (default: 1000,5000)
`,
  read: ({ ended }) => ({ ended: counts(String(ended)).toSorted((a, b) => a - b) }),
};

interface Stage extends Rest {
  readonly ended: number;
  /** The agent's CPU time per ended pod since the previous stage. */
  readonly cpuMsPerEnded: number | undefined;
  readonly readyMs: number;
}

/** Creates pods that end and are kept by the API server. Resolves to the agent's CPU time per pod, in ms. */
async function bury(cluster: BenchCluster, count: number): Promise<number> {
  const [app] = podManifest("ended").spec.containers;
  const command = behaviourCommand({ exitAfterMs: 50, exitCode: 0, deaf: false, unstartable: false });
  const { cpuMs } = await cluster.usage();
  for (let left = count; left > 0; left -= atOnce) {
    const names = newNames("ended", Math.min(left, atOnce));
    cluster.create(names, { restartPolicy: "Never", containers: [{ ...app, command }] });
    await cluster.times(names, (pod) => pod?.status?.phase === "Succeeded");
  }
  return ((await cluster.usage()).cpuMs - cpuMs) / count;
}

/** Median time until a single pod is ready, in ms. */
async function startAlone(cluster: BenchCluster): Promise<number> {
  const all: number[] = [];
  for (const name of newNames("alone", startedAlone)) {
    await sleep(pauseMs);
    const began = performance.now();
    cluster.create([name]);
    const [ready = Number.NaN] = await cluster.times([name], (pod) => hasCondition(pod, "Ready"));
    all.push(ready - began);
    cluster.delete([name]);
    await cluster.times([name], (pod) => pod === undefined);
  }
  return median(all);
}

async function rest(cluster: BenchCluster): Promise<Rest> {
  await sleep(calmMs);
  return await restFor(restMs, async () => await cluster.usage());
}

async function measureStage(cluster: BenchCluster, ended: number, cpuMsPerEnded?: number): Promise<Stage> {
  const readyMs = await startAlone(cluster);
  const stage = { ended, cpuMsPerEnded, readyMs, ...(await rest(cluster)) };
  const { cpuPercent, rssMiB } = stage;
  progress(
    `${ended} ended: ${cpuMsPerEnded?.toFixed(1) ?? "-"} ms each; ready after ${readyMs.toFixed(0)} ms; ` +
      `${cpuPercent.toFixed(2)} % at rest, ${rssMiB.toFixed(0)} MiB`,
  );
  return stage;
}

/** Kills and restarts the agent: its CPU time and peak until a new pod is ready. */
async function measureRestart(cluster: BenchCluster): Promise<{ cpuMs: number; tookMs: number; peakMiB: number }> {
  const began = performance.now();
  await cluster.restartKubelet();
  const [name = ""] = newNames("after", 1);
  cluster.create([name]);
  const [ready = Number.NaN] = await cluster.times([name], (pod) => hasCondition(pod, "Ready"));
  const { cpuMs, peakRssMiB } = await cluster.usage();
  return { cpuMs, tookMs: ready - began, peakMiB: peakRssMiB };
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 1, pods: [50] }, endedOptions);
  const load = loadavg()[0] ?? 0;
  const running = options.pods[0] ?? 0;
  await using cluster = await BenchCluster.start(options, "podwright", startTestRuntime);
  const names = newNames("running", running);
  cluster.create(names);
  await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  const stages = [await measureStage(cluster, 0)];
  for (const ended of options.ended) {
    const cpuMsPerEnded = await bury(cluster, ended - (stages.at(-1)?.ended ?? 0));
    stages.push(await measureStage(cluster, ended, cpuMsPerEnded));
  }
  const restart = await measureRestart(cluster);
  progress(`restart: ${restart.tookMs.toFixed(0)} ms, CPU ${restart.cpuMs} ms, peak ${restart.peakMiB.toFixed(0)} MiB`);
  printReport(
    {
      bench: "ended",
      setting: [
        `${running} pods run beside those that have ended; load ${load.toFixed(1)} at the start`,
        `restarted with the last: a new pod ready after ${restart.tookMs.toFixed(0)} ms, CPU ${restart.cpuMs} ms, ` +
          `RSS at most ${restart.peakMiB.toFixed(0)} MiB`,
      ],
      columns: ["ended pods", "CPU ms each", "a pod ready ms", "% of a core at rest", "RSS MiB"],
      rows: stages.map(({ ended, cpuMsPerEnded, readyMs, cpuPercent, rssMiB }) => [
        ended,
        cpuMsPerEnded?.toFixed(1) ?? "–",
        readyMs,
        cpuPercent.toFixed(2),
        rssMiB,
      ]),
      goals: [],
      measurements: { stages, restart },
    },
    options.json,
  );
}

await main();
