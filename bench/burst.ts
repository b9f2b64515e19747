/**
 * The cost of bursts of pods: CPU time and peak resident memory of the agent while many pods are created and deleted
 * together. Compares podwright with an earlier podwright, another kubelet and a bare client in the same Node.js,
 * alternating; each has its own cluster in each round. With `--together` they run at the same time: what the machine
 * does then hits all alike, so that a few rounds show differences of some per cent.
 *
 * burst.ts [--pods 50,100] [--rounds 5] [--before PROGRAM] [--kubelet PATH] [--together] [--json] …
 *
 * The bare client makes the same CRI calls, mounts the same token and sends the same Events and statuses; see
 * bench/support/bare-burst.ts.
 */
import { basename } from "node:path";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type AgentBursts, type Burst, burstGoals, burstTable } from "./support/burst-report.ts";
import { type Agent, BenchCluster } from "./support/cluster.ts";
import { program } from "./support/cluster-options.ts";
import { type BenchOptions, benchOptions, type OwnOptions } from "./support/options.ts";
import { printReport, progress } from "./support/report.ts";
import { runKubelet } from "./support/rounds.ts";

interface BurstOptions {
  /** Absolute path of an earlier bundle. */
  readonly before: string | undefined;
  /** Absolute path of another kubelet. */
  readonly kubelet: string | undefined;
  /** All at the same time, without the bare client. */
  readonly together: boolean;
}

const burstOptions: OwnOptions<BurstOptions> = {
  options: { before: { type: "string" }, kubelet: { type: "string" }, together: { type: "boolean", default: false } },
  usage: `  --before PROGRAM    an earlier bundle to measure beside
  --kubelet PATH      another kubelet to measure beside
  --together          all at the same time, without the bare client
`,
  read: ({ before, kubelet, together }) => ({
    together: together === true,
    before: typeof before === "string" ? program("--before", before) : undefined,
    kubelet: typeof kubelet === "string" ? program("--kubelet", kubelet) : undefined,
  }),
};

/** By then the memory of a start or earlier pods is released: bursts meet nodes at rest. */
const settleMs = 35_000;
const firstPods = 4;

interface Subject extends AgentBursts {
  readonly agent: Agent;
  readonly program: string;
  readonly bursts: Map<number, Burst[]>;
}

function subjects(options: BenchOptions & BurstOptions): Subject[] {
  const subject = (name: string, agent: Agent, from = options.program): Subject => {
    return { name, agent, program: from, bursts: new Map(options.pods.map((pods) => [pods, []])) };
  };
  const { before, kubelet, together } = options;
  return [
    subject("podwright", "podwright"),
    ...(before === undefined ? [] : [subject("podwright before", "podwright", before)]),
    ...(kubelet === undefined ? [] : [subject(basename(kubelet), { kubelet })]),
    ...(together ? [] : [subject("bare client", "bare")]),
  ];
}

/** The subjects' bursts, at the same time. */
async function measure(options: BenchOptions, group: readonly Subject[]): Promise<void> {
  await using clusters = new AsyncDisposableStack();
  const running: { readonly subject: Subject; readonly cluster: BenchCluster }[] = [];
  for (const subject of group) {
    const { program: from, agent } = subject;
    const cluster = clusters.use(await BenchCluster.start({ ...options, program: from }, agent));
    running.push({ subject, cluster });
  }
  await Promise.all(running.map(({ cluster }) => runKubelet(cluster, firstPods)));
  for (const pods of options.pods) {
    await sleep(settleMs);
    await Promise.all(
      running.map(async ({ subject: { name, bursts }, cluster }) => {
        const burst = await measureBurst(cluster, pods);
        bursts.get(pods)?.push(burst);
        const { cpuMs, spawnedCpuMs, peakMiB } = burst;
        progress(`${name}, ${pods} pods: ${cpuMs} ms (programs ${spawnedCpuMs} ms), at most ${peakMiB.toFixed(0)} MiB`);
      }),
    );
  }
}

async function measureBurst(cluster: BenchCluster, pods: number): Promise<Burst> {
  await cluster.resetPeak();
  const before = await cluster.usage();
  const { ready, gone } = await runKubelet(cluster, pods);
  const after = await cluster.usage();
  return {
    cpuMs: after.cpuMs - before.cpuMs,
    spawnedCpuMs: after.spawnedCpuMs - before.spawnedCpuMs,
    restMiB: before.rssMiB,
    peakMiB: after.peakRssMiB,
    readyMs: Math.max(...ready),
    goneMs: Math.max(...gone),
  };
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 5, pods: [50, 100] }, burstOptions);
  const load = loadavg()[0] ?? 0;
  const all = subjects(options);
  for (let round = 0; round < options.rounds; round++) {
    progress(`round ${round + 1}:`);
    const turns = round % 2 === 0 ? all : all.toReversed();
    for (const group of options.together ? [turns] : turns.map((subject) => [subject])) await measure(options, group);
  }
  const [own] = all;
  const other = all.find(({ agent }) => typeof agent === "object");
  printReport(
    {
      bench: "burst",
      setting: [
        `${all.map(({ name }) => name).join(", ")} ${options.together ? "at the same time" : "in turn"}; load ${load.toFixed(1)} at the start; ${options.rounds} rounds, medians`,
        "CPU time of the agent alone while all pods come and go; ratios: podwright's to that of the row, medians of the rounds",
      ],
      ...burstTable(all),
      goals: own === undefined || other === undefined ? [] : burstGoals(own, other),
      measurements: all.map(({ name, bursts }) => ({ name, bursts: Object.fromEntries(bursts) })),
    },
    options.json,
  );
}

await main();
