/**
 * Pods started together: podwright's time until all run, relative to the same CRI calls made directly.
 *
 * start.ts [--pods 1,10,50] [--rounds 5] [--containerd PATH] [--json]
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Floor } from "./support/floor.ts";
import { BenchNode, podManifest } from "./support/node.ts";
import { benchOptions } from "./support/options.ts";
import { type Goal, printReport, progress } from "./support/report.ts";
import { median } from "./support/statistics.ts";

const goalRatio = 1.25;
const parallelisms = [1, 2, 3, 4, 6, 8];
/** Runs that differ by less count as equal: the one with the earlier median pod is the better floor. */
const noise = 1.05;
/** After each run: the runtime's shims and the kernel clean up asynchronously. */
const settleMs = 1_000;

/** One run: milliseconds from the start of the run. */
interface Run {
  /** When all pods ran. */
  readonly all: number;
  /** When half of them ran. */
  readonly medianPod: number;
}

interface PodwrightRun extends Run {
  readonly cpuMs: number;
  readonly rssMiB: number;
}

interface Outcome {
  readonly pods: number;
  readonly atOnce: number;
  readonly calibration: Readonly<Record<number, Run>>;
  readonly floor: readonly Run[];
  readonly podwright: readonly PodwrightRun[];
}

let runs = 0;

/** Names that no run before had. */
function newNames(prefix: string, count: number): string[] {
  runs++;
  return Array.from({ length: count }, (_, index) => `${prefix}-${runs}-${index}`);
}

function runOf(times: readonly number[]): Run {
  return { all: Math.max(...times), medianPod: median(times) };
}

/** A pod runs when its StartContainer has returned. */
async function runFloor(floor: Floor, count: number, atOnce: number): Promise<Run> {
  const pods = await floor.prepare(newNames("floor", count));
  const times: number[] = [];
  try {
    const began = performance.now();
    await floor.startAll(pods, atOnce, () => void times.push(performance.now() - began));
  } finally {
    await floor.remove(pods.filter((pod) => pod.sandboxId !== ""));
  }
  await sleep(settleMs);
  return runOf(times);
}

/** A pod runs when a client that follows the journal has seen it become Running. */
async function runPodwright(node: BenchNode, count: number): Promise<PodwrightRun> {
  const names = newNames("start", count);
  const waiting = new Set(names);
  const times: number[] = [];
  const before = await node.usage();
  const following = new AbortController();
  const { journalSeq } = await node.engine.health();
  let began = 0;
  const watching = (async () => {
    for await (const entry of node.engine.follow({ sinceSeq: journalSeq + 1 }, following.signal)) {
      const isRunning = entry.what === "PodPhaseChanged" && entry.data?.["to"] === "Running";
      if (!isRunning || !waiting.delete(entry.pod?.name ?? "")) continue;
      times.push(performance.now() - began);
      if (waiting.size === 0) return;
    }
  })();
  // The journal request is being answered.
  await sleep(50);
  began = performance.now();
  await node.apply(names.map((name) => podManifest(name)));
  await watching;
  following.abort();
  const after = await node.usage();
  await node.remove(names);
  await sleep(settleMs);
  return { ...runOf(times), cpuMs: after.cpuMs - before.cpuMs, rssMiB: after.rssMiB };
}

/** The fastest concurrency of the floor, and the run of each one that was tried. */
async function calibrate(
  floor: Floor,
  count: number,
): Promise<{ readonly atOnce: number; readonly calibration: Record<number, Run> }> {
  const candidates = [...new Set([...parallelisms.filter((atOnce) => atOnce < count), count])];
  const calibration: Record<number, Run> = {};
  for (const atOnce of candidates) calibration[atOnce] = await runFloor(floor, count, atOnce);
  const fastest = Math.min(...Object.values(calibration).map((run) => run.all));
  const [best] = Object.entries(calibration)
    .filter(([, run]) => run.all <= fastest * noise)
    .toSorted(([, a], [, b]) => a.medianPod - b.medianPod);
  return { atOnce: Number(best?.[0] ?? 1), calibration };
}

async function measure(node: BenchNode, floor: Floor, pods: number, rounds: number): Promise<Outcome> {
  const { atOnce, calibration } = await calibrate(floor, pods);
  const outcome = { pods, atOnce, calibration, floor: [] as Run[], podwright: [] as PodwrightRun[] };
  for (let round = 0; round < rounds; round++) {
    // The order alternates, so that neither always follows the other's clean-up.
    if (round % 2 === 0) outcome.floor.push(await runFloor(floor, pods, atOnce));
    outcome.podwright.push(await runPodwright(node, pods));
    if (round % 2 === 1) outcome.floor.push(await runFloor(floor, pods, atOnce));
    const text = (run: Run | undefined): string => `${run?.medianPod.toFixed(0)}/${run?.all.toFixed(0)} ms`;
    progress(
      `${pods} pods, round ${round + 1} of ${rounds}: floor ${text(outcome.floor.at(-1))}, ` +
        `podwright ${text(outcome.podwright.at(-1))} (median pod/all)`,
    );
  }
  return outcome;
}

function summary({ pods, atOnce, floor, podwright }: Outcome): { row: (string | number)[]; goals: Goal[] } {
  const of = (series: readonly Run[], key: keyof Run): number => median(series.map((run) => run[key]));
  const all = of(podwright, "all") / of(floor, "all");
  const medianPod = of(podwright, "medianPod") / of(floor, "medianPod");
  const name = pods === 1 ? "1 pod" : `${pods} pods at once`;
  return {
    row: [
      pods,
      atOnce,
      of(floor, "medianPod"),
      of(podwright, "medianPod"),
      medianPod.toFixed(2),
      of(floor, "all"),
      of(podwright, "all"),
      all.toFixed(2),
      median(podwright.map((run) => run.cpuMs)),
      Math.max(...podwright.map((run) => run.rssMiB)),
    ],
    goals: [
      { name: `${name}, median pod`, value: medianPod, atMost: goalRatio, unit: "×" },
      { name: `${name}, all`, value: all, atMost: goalRatio, unit: "×" },
    ],
  };
}

async function main(): Promise<void> {
  const options = benchOptions({ rounds: 5, pods: [1, 10, 50] });
  await using node = await BenchNode.start(options);
  const floor = await Floor.open(node);
  // Both begin warm: with compiled code and cached files.
  await runFloor(floor, 4, 2);
  await runPodwright(node, 4);
  const outcomes: Outcome[] = [];
  for (const pods of options.pods) {
    // One pod takes little time and varies much.
    outcomes.push(await measure(node, floor, pods, pods === 1 ? options.rounds * 3 : options.rounds));
  }
  const { peakRssMiB } = await node.usage();
  const summaries = outcomes.map(summary);
  printReport(
    {
      bench: "start",
      setting: [
        `${node.runtime}; medians of ${options.rounds} alternating runs, milliseconds until a pod is seen Running`,
        `podwright ${options.program}, peak RSS ${peakRssMiB.toFixed(0)} MiB`,
      ],
      columns: [
        "pods",
        "floor at once",
        "floor median pod",
        "podwright",
        "ratio",
        "floor all",
        "podwright",
        "ratio",
        "CPU ms",
        "RSS MiB",
      ],
      rows: summaries.map(({ row }) => row),
      goals: summaries.flatMap(({ goals }) => goals),
      measurements: outcomes,
    },
    options.json,
  );
}

await main();
