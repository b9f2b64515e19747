/**
 * A node of a cluster: from the creation of pods at the API server until they are Running, Ready and, after their
 * deletion, gone from it, at once and one by one; restarts; statuses; rest. Each beside the same CRI calls made directly, in one run.
 *
 *   cluster.ts [--pods 1,10,50,100] [--rounds 3] [--rest 20,50,100,250] [--dead 5000] [--kubelet PATH] [--containerd PATH] [--json]
 *
 * The API server is the one for tests: it answers at once, so that the kubelet's own time shows. `--kubelet` measures
 * another kubelet in podwright's place; it is stopped while the floor's pods are there, which it would end.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { BenchCluster, hasCondition } from "./support/cluster.ts";
import { measureRestarts, measureRest, measureStatuses, restRow, type RestFigures } from "./support/cluster-figures.ts";
import { Floor } from "./support/floor.ts";
import { measureOneByOne, type OneByOneFigures } from "./support/one-by-one.ts";
import { benchOptions } from "./support/options.ts";
import { type Goal, printReport, progress } from "./support/report.ts";
import { median, quantile } from "./support/statistics.ts";

const startGoal = 1.3;
const restartGoal = 1.3;
const deleteGoal = 2.3;
/** As many at a time as is best for the runtime alone on two cores; see start.ts, which finds it anew in each run. */
const floorAtOnce = 3;
const settleMs = 1_500;
const podsOneByOne = 20;

/** Milliseconds from the beginning, one a pod. */
interface Round {
  readonly started: readonly number[];
  readonly ready: readonly number[];
  readonly gone: readonly number[];
}

interface Outcome {
  readonly pods: number;
  readonly floor: readonly Round[];
  readonly kubelet: readonly Round[];
}

let runs = 0;

function newNames(prefix: string, count: number): string[] {
  runs++;
  return Array.from({ length: count }, (_, index) => `${prefix}-${runs}-${index}`);
}

/** Ready is what Running is: nothing is probed. */
async function runFloor(cluster: BenchCluster, floor: Floor, count: number): Promise<Round> {
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

async function runKubelet(cluster: BenchCluster, count: number): Promise<Round> {
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

async function measure(cluster: BenchCluster, floor: Floor, pods: number, rounds: number): Promise<Outcome> {
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

/** Of each round the pod at that part, of the rounds the median. */
function at(part: number, rounds: readonly Round[], what: keyof Round): number {
  return median(rounds.map((round) => quantile(round[what], part)));
}

function rowsOf({ pods, floor, kubelet }: Outcome): { rows: (string | number)[][]; goals: Goal[] } {
  const rows = (["started", "ready", "gone"] as const).map((what) => {
    const figures = (rounds: readonly Round[]): number[] => [0.5, 0.9, 1].map((part) => at(part, rounds, what));
    const ratio = (at(1, kubelet, what) / at(1, floor, what)).toFixed(2);
    return [`${pods} pods, ${what}`, ...figures(floor), ...figures(kubelet), ratio];
  });
  const goal = (what: keyof Round, atMost: number): Goal => {
    return { name: `${pods} pods, all ${what}`, value: at(1, kubelet, what) / at(1, floor, what), atMost, unit: "×" };
  };
  return { rows, goals: [goal("ready", startGoal), goal("gone", deleteGoal)] };
}

/** @returns a row each for what is ready and what is gone, and the goals of the medians */
function oneByOneRows(floor: OneByOneFigures, kubelet: OneByOneFigures): ReturnType<typeof rowsOf> {
  const of = (what: keyof OneByOneFigures, atMost: number): { row: (string | number)[]; goal: Goal } => {
    const figures = [floor, kubelet].flatMap((one) => [0.5, 0.9, 1].map((part) => quantile(one[what], part)));
    const value = median(kubelet[what]) / median(floor[what]);
    const name = `${kubelet[what].length} pods one by one, ${what}`;
    return {
      row: [name, ...figures, `${value.toFixed(2)} (p50)`],
      goal: { name: `${name}, median`, value, atMost, unit: "×" },
    };
  };
  const both = [of("ready", startGoal), of("gone", deleteGoal)];
  return { rows: both.map(({ row }) => row), goals: both.map(({ goal }) => goal) };
}

/** This bench's own options, and the arguments that are left for all benches. */
function ownOptions(): { rest: readonly number[]; dead: number; kubelet: string | undefined } {
  const { values, tokens } = parseArgs({
    options: { rest: { type: "string" }, dead: { type: "string" }, kubelet: { type: "string" } },
    strict: false,
    tokens: true,
  });
  const own = new Set<number>();
  for (const token of tokens) {
    if (token.kind !== "option" || !["rest", "dead", "kubelet"].includes(token.name)) continue;
    own.add(token.index);
    if (token.inlineValue === false) own.add(token.index + 1);
  }
  process.argv = [...process.argv.slice(0, 2), ...process.argv.slice(2).filter((_, index) => !own.has(index))];
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  return {
    rest: text(values["rest"]).split(",").filter(Boolean).map(Number),
    dead: Number(text(values["dead"]) || 0),
    kubelet: text(values["kubelet"]) || undefined,
  };
}

function milliseconds(times: readonly number[]): string {
  return `${median(times).toFixed(0)} ms`;
}

async function main(): Promise<void> {
  const own = ownOptions();
  const options = benchOptions({ rounds: 3, pods: [1, 10, 50, 100] });
  const load = loadavg()[0] ?? 0;
  await using cluster = await BenchCluster.start(options, own.kubelet);
  const floor = await Floor.open(cluster);
  await runFloor(cluster, floor, 4);
  await runKubelet(cluster, 4);
  const outcomes: Outcome[] = [];
  for (const pods of options.pods) outcomes.push(await measure(cluster, floor, pods, options.rounds));
  const oneByOne = await measureOneByOne(cluster, floor, newNames("alone", podsOneByOne));
  const restarts = await measureRestarts(cluster, floor, newNames("restart", 10));
  const statusesMs = await measureStatuses(cluster, newNames("refused", 200));
  const rests: RestFigures[] = [];
  for (const pods of own.rest) rests.push(await measureRest(cluster, newNames("rest", pods), 0));
  if (own.dead > 0) rests.push(await measureRest(cluster, newNames("rest", 50), own.dead, floor));
  const summaries = [...outcomes.map(rowsOf), oneByOneRows(oneByOne.floor, oneByOne.kubelet)];
  const restart = median(restarts.kubelet) / median(restarts.floor);
  printReport(
    {
      bench: "cluster",
      setting: [
        `${own.kubelet ?? `podwright ${options.program}`}; load ${load.toFixed(1)} at the start; ${options.rounds} rounds`,
        `milliseconds since the pods were created, or deleted, at the API server; the floor ${floorAtOnce} at a time`,
        `exit of a container until its next instance is started: median ${milliseconds(restarts.kubelet)}, ` +
          `floor ${milliseconds(restarts.floor)}; until the API server shows that: ${milliseconds(restarts.shown)}`,
        `200 statuses published after ${statusesMs.toFixed(0)} ms`,
        ...rests.map(restRow),
      ],
      columns: ["", "floor p50", "p90", "max", "kubelet p50", "p90", "max", "ratio of max"],
      rows: summaries.flatMap(({ rows }) => rows),
      goals: [
        ...summaries.flatMap(({ goals }) => goals),
        { name: "median restart", value: restart, atMost: restartGoal, unit: "×" },
        { name: "200 statuses", value: statusesMs, atMost: 3_000, unit: "ms" },
      ],
      measurements: { outcomes, oneByOne, restarts, statusesMs, rests },
    },
    options.json,
  );
}

await main();
