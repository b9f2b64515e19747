/**
 * Plays random lives of a whole node in the simulator; `--help` lists the options. A life that breaks a rule is shrunk
 * and reported with its timeline. Exit code 1 when a life broke a rule, 2 for invalid options.
 */
import { performance } from "node:perf_hooks";
import type { Happening } from "../src/sim/life/happening.ts";
import { stepKinds } from "../src/sim/life/steps.ts";
import { timeline } from "../src/sim/life/timeline.ts";
import { runCommand } from "./command-options.ts";
import { tellFailure } from "./sim-failure.ts";
import { readSimOptions, simHelp, type SimOptions } from "./sim-options.ts";
import { SimPool } from "./sim-pool.ts";
import type { Report } from "./sim-worker.ts";

/** Further failures are only named. */
const shownFailures = 3;
const progressMs = 5000;
/** With fewer lives most kinds of steps do not occur. */
const manyLives = 100;

interface Totals {
  readonly beganMs: number;
  lives: number;
  simulatedMs: number;
  readonly failures: Report[];
  readonly steps: Map<string, number>;
  readonly faults: Map<string, number>;
  readonly actions: Map<string, number>;
}

function add(totals: Totals, report: Report): void {
  totals.lives++;
  totals.simulatedMs += report.simulatedMs;
  const [problem] = report.problems;
  if (problem !== undefined) {
    totals.failures.push(report);
    console.error(`seed ${report.seed}: ${problem.rule}`);
  }
  for (const kind of ["steps", "faults", "actions"] as const) {
    for (const [what, count] of report.coverage[kind]) totals[kind].set(what, (totals[kind].get(what) ?? 0) + count);
  }
}

function figures(totals: Totals): string {
  const seconds = (performance.now() - totals.beganMs) / 1000;
  const hours = totals.simulatedMs / 3_600_000;
  return [
    `${totals.lives} ${totals.lives === 1 ? "life" : "lives"} in ${seconds.toFixed(1)} s`,
    `${(totals.lives / seconds).toFixed(1)} seeds/s`,
    `${((hours / seconds) * 60).toFixed(0)} simulated hours/min`,
    `${totals.failures.length} failed`,
  ].join(", ");
}

/** The contents of an average life, so that speed is not gained by doing less. */
function average({ lives, simulatedMs, steps, actions }: Totals): string {
  const sum = (counts: ReadonlyMap<string, number>): number =>
    counts.values().reduce((total, count) => total + count, 0);
  const each = (count: number): string => (count / lives).toFixed(0);
  const minutes = (simulatedMs / lives / 60_000).toFixed(1);
  return `each life on average: ${minutes} simulated minutes, ${each(sum(steps))} steps, ${each(sum(actions))} actions and decisions`;
}

function printCoverage({ lives, steps, faults, actions }: Totals): void {
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([what, count]) => `${what} ${count}`)
      .join(", ");
  console.log(`steps: ${list(steps)}\nfaults: ${list(faults)}\nactions and decisions: ${list(actions)}`);
  const missing = stepKinds.filter((kind) => !steps.has(kind));
  if (missing.length > 0 && lives >= manyLives) console.log(`steps never taken: ${missing.join(", ")}`);
}

/** Plays the lives in parallel. */
async function playAll(pool: SimPool, options: SimOptions, totals: Totals): Promise<void> {
  const { first, last, minutes, isTraced, parts } = options;
  const endMs = minutes === undefined ? Number.POSITIVE_INFINITY : totals.beganMs + minutes * 60_000;
  let next = first;
  const print = inOrder(first);
  const work = async (): Promise<void> => {
    while (next <= last && performance.now() < endMs) {
      const seed = next++;
      const happenings: Happening[] = [];
      const onHappening = (happening: Happening): unknown => happenings.push(happening);
      const report = await pool.play(seed, parts, isTraced ? { onHappening } : {});
      if (isTraced) print(seed, timeline(seed, happenings, report.problems));
      add(totals, report);
    }
  };
  await Promise.all(Array.from({ length: pool.size }, work));
}

/** Prints the seeds' texts in order. */
function inOrder(first: number): (seed: number, text: string) => void {
  const waiting = new Map<number, string>();
  let next = first;
  return (seed, given) => {
    waiting.set(seed, given);
    for (let text = waiting.get(next); text !== undefined; text = waiting.get(next)) {
      console.log(text);
      waiting.delete(next++);
    }
  };
}

async function main(args: readonly string[]): Promise<number> {
  const options = readSimOptions(args);
  if (options === undefined) {
    console.log(simHelp);
    return 0;
  }
  const totals: Totals = {
    beganMs: performance.now(),
    lives: 0,
    simulatedMs: 0,
    failures: [],
    steps: new Map(),
    faults: new Map(),
    actions: new Map(),
  };
  await using pool = new SimPool(options.threads);
  const progress = setInterval(() => console.error(figures(totals)), progressMs);
  await playAll(pool, options, totals);
  clearInterval(progress);
  // Traces of the same lives are identical, byte for byte.
  if (options.isTraced) console.error(figures(totals));
  else console.log(figures(totals));
  console.log(average(totals));
  printCoverage(totals);
  const failures = totals.failures.toSorted((a, b) => a.seed - b.seed);
  // The trace has shown what is left of a shrunk life.
  const isToldAlready = options.isTraced && options.parts.steps !== undefined;
  for (const failure of isToldAlready ? [] : failures.slice(0, shownFailures)) {
    console.log(`\n${await tellFailure(pool, failure, options.parts)}`);
  }
  if (failures.length > 0) console.log(`\nfailed: seeds ${failures.map(({ seed }) => seed).join(" ")}`);
  return failures.length > 0 ? 1 : 0;
}

await runCommand("npm run sim --", main);
