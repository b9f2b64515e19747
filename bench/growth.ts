/**
 * How a node's costs grow with its pods, plain ones and ones with a readiness probe: at start, at rest, at removal. CPU
 * time and memory of the agent for each number of pods, optionally compared with another kubelet.
 *
 *   growth.ts [--pods 50,250] [--kubelet PATH] [--test-runtime] [--json] …
 *
 * With the tests' simulated runtime behind a real socket 250 pods start in half a minute, and the machine is free for
 * the agent. Its containers answer no probes: only plain pods then.
 */
import { basename } from "node:path";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { startPrivateContainerd, startTestRuntime } from "./support/bench-runtime.ts";
import { type Agent, BenchCluster, hasCondition } from "./support/cluster.ts";
import { program } from "./support/cluster-options.ts";
import { podManifest, serving } from "./support/node.ts";
import { type BenchOptions, benchOptions, type OwnOptions } from "./support/options.ts";
import { type Goal, printReport, progress } from "./support/report.ts";
import { restFor } from "./support/rest-figures.ts";
import { newNames, runKubelet } from "./support/rounds.ts";

interface GrowthOptions {
  /** Absolute path of another kubelet. */
  readonly kubelet: string | undefined;
  readonly testRuntime: boolean;
}

const growthOptions: OwnOptions<GrowthOptions> = {
  options: { kubelet: { type: "string" }, "test-runtime": { type: "boolean", default: false } },
  usage: `  --kubelet PATH      another kubelet to measure beside
  --test-runtime      the tests' simulated runtime instead of containerd; plain pods only
`,
  read: ({ kubelet, "test-runtime": testRuntime }) => ({
    kubelet: typeof kubelet === "string" ? program("--kubelet", kubelet) : undefined,
    testRuntime: testRuntime === true,
  }),
};

const calmMs = 45_000;
const restMs = 60_000;
const firstPods = 4;
/** More than noise. */
const goalGrowth = 1.25;

interface Growth {
  readonly agent: string;
  readonly probed: boolean;
  readonly pods: number;
  readonly readyMs: number;
  readonly startCpuMs: number;
  readonly peakMiB: number;
  readonly restPercent: number;
  readonly restMiB: number;
  readonly goneMs: number;
  readonly goneCpuMs: number;
}

/** A server with a readiness probe each second. */
function probedSpec(): object {
  const [app] = podManifest("probed").spec.containers;
  return { containers: [{ ...app, ...serving }] };
}

async function measure(cluster: BenchCluster, agent: string, pods: number, probed: boolean): Promise<Growth> {
  const names = newNames(probed ? "probed" : "plain", pods);
  await cluster.resetPeak();
  const [idle, created] = [await cluster.usage(), performance.now()];
  cluster.create(names, probed ? probedSpec() : {});
  const ready = await cluster.times(names, (pod) => hasCondition(pod, "Ready"));
  const started = await cluster.usage();
  await sleep(calmMs);
  const rest = await restFor(restMs, async () => await cluster.usage());
  const [rested, deleted] = [await cluster.usage(), performance.now()];
  cluster.delete(names);
  const gone = await cluster.times(names, (pod) => pod === undefined);
  const ended = await cluster.usage();
  const growth = {
    agent,
    probed,
    pods,
    readyMs: Math.max(...ready) - created,
    startCpuMs: started.cpuMs - idle.cpuMs,
    peakMiB: started.peakRssMiB,
    restPercent: rest.cpuPercent,
    restMiB: rest.rssMiB,
    goneMs: Math.max(...gone) - deleted,
    goneCpuMs: ended.cpuMs - rested.cpuMs,
  };
  progress(row(growth).join("  "));
  return growth;
}

function row(one: Growth): string[] {
  const { agent, probed, pods, readyMs, startCpuMs, peakMiB, restPercent, restMiB, goneMs, goneCpuMs } = one;
  return [
    `${pods} ${probed ? "probed" : "plain"} pods, ${agent}`,
    (readyMs / 1000).toFixed(1),
    (startCpuMs / pods).toFixed(1),
    peakMiB.toFixed(0),
    restPercent.toFixed(2),
    restMiB.toFixed(0),
    (goneMs / 1000).toFixed(1),
    (goneCpuMs / pods).toFixed(1),
  ];
}

async function measureAgent(options: BenchOptions & GrowthOptions, name: string, agent: Agent): Promise<Growth[]> {
  const startRuntime = options.testRuntime ? startTestRuntime : startPrivateContainerd;
  await using cluster = await BenchCluster.start(options, agent, startRuntime);
  await runKubelet(cluster, firstPods);
  const all: Growth[] = [];
  for (const probed of options.testRuntime ? [false] : [false, true]) {
    for (const pods of options.pods) all.push(await measure(cluster, name, pods, probed));
  }
  return all;
}

/** CPU time per pod with the most pods, relative to the fewest. */
function goals(own: readonly Growth[]): Goal[] {
  return [false, true].flatMap((probed) => {
    const of = own.filter((one) => one.probed === probed);
    const [few, many] = [of[0], of.at(-1)];
    if (few === undefined || many === undefined || few === many) return [];
    const goal = (what: string, cost: (one: Growth) => number): Goal => {
      const name = `${what}, ${many.pods} ${probed ? "probed" : "plain"} pods over ${few.pods}`;
      return { name, value: cost(many) / cost(few), atMost: goalGrowth, unit: "× few" };
    };
    return [
      goal("CPU time of a pod's start", ({ startCpuMs, pods }) => startCpuMs / pods),
      goal("CPU time of a pod's going", ({ goneCpuMs, pods }) => goneCpuMs / pods),
      goal("CPU time of a pod at rest", ({ restPercent, pods }) => restPercent / pods),
    ];
  });
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 1, pods: [50, 250] }, growthOptions);
  const load = loadavg()[0] ?? 0;
  const own = await measureAgent(options, "podwright", "podwright");
  const { kubelet } = options;
  const other = kubelet === undefined ? [] : await measureAgent(options, basename(kubelet), { kubelet });
  printReport(
    {
      bench: "growth",
      setting: [`load ${load.toFixed(1)} at the start; CPU time of the agent in ms a pod, of rest in % of a core`],
      columns: ["", "ready s", "start ms", "peak MiB", "rest %", "rest MiB", "gone s", "going ms"],
      rows: [...own, ...other].map(row),
      goals: goals(own),
      measurements: { own, other },
    },
    options.json,
  );
}

await main();
