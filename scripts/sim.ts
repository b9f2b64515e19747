/**
 * Plays random lives of a whole node in the simulator.
 *
 *   sim.ts [--seeds N] [--seed FIRST] [--minutes M] [--threads T] [--trace] [--steps 0,3] [--without probes,hooks]
 *
 * Without arguments the seeds 1 to 1000. `--minutes`: as many seeds as that time allows. `--trace`: the whole timeline of
 * each life. `--steps` and `--without`: only these steps of the plan, pods without these features, as a failure's
 * command says. A failure is shrunk and told with its timeline. Exit code 1 when a life broke a rule.
 */
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { errorMessage } from "../src/base/errors.ts";
import type { Happening } from "../src/sim/life/happening.ts";
import { stepKinds } from "../src/sim/life/steps.ts";
import { timeline } from "../src/sim/life/timeline.ts";
import { tellFailure } from "./sim-failure.ts";
import { SimPool } from "./sim-pool.ts";
import type { LifeParts, Report } from "./sim-worker.ts";

/** More failures than these are only named. */
const shownFailures = 3;
const progressMs = 5000;

const usageText =
  "usage: sim [--seeds N] [--seed FIRST] [--minutes M] [--threads T] [--trace] [--steps LIST] [--without LIST]";

function usage(problem: string): never {
  console.error(`${problem}\n${usageText}`);
  process.exit(2);
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d+$/.test(text) && Number(text) > 0 ? Number(text) : usage(`--${name} takes a whole number above 0`);
}

interface Totals {
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

function figures(totals: Totals, beganMs: number): string {
  const seconds = (performance.now() - beganMs) / 1000;
  const hours = totals.simulatedMs / 3_600_000;
  return [
    `${totals.lives} lives in ${seconds.toFixed(1)} s`,
    `${(totals.lives / seconds).toFixed(1)} seeds/s`,
    `${((hours / seconds) * 60).toFixed(0)} simulated hours/min`,
    `${totals.failures.length} failed`,
  ].join(", ");
}

/** How much a life holds, so that none gets faster by doing less. */
function average({ lives, simulatedMs, steps, actions }: Totals): string {
  const sum = (counts: ReadonlyMap<string, number>): number =>
    counts.values().reduce((total, count) => total + count, 0);
  const each = (count: number): string => (count / lives).toFixed(0);
  const minutes = (simulatedMs / lives / 60_000).toFixed(1);
  return `each life on average: ${minutes} simulated minutes, ${each(sum(steps))} steps, ${each(sum(actions))} actions and decisions`;
}

function printCoverage({ steps, faults, actions }: Totals): void {
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([what, count]) => `${what} ${count}`)
      .join(", ");
  console.log(`steps: ${list(steps)}\nfaults: ${list(faults)}\nactions and decisions: ${list(actions)}`);
  const missing = stepKinds.filter((kind) => !steps.has(kind));
  if (missing.length > 0) console.log(`steps never taken: ${missing.join(", ")}`);
}

const optionsTaken = {
  seeds: { type: "string" },
  seed: { type: "string" },
  minutes: { type: "string" },
  threads: { type: "string" },
  trace: { type: "boolean", default: false },
  steps: { type: "string" },
  without: { type: "string" },
  help: { type: "boolean", default: false },
} as const;

function readOptions(): ReturnType<typeof parseArgs<{ readonly options: typeof optionsTaken }>>["values"] {
  try {
    return parseArgs({ options: optionsTaken }).values;
  } catch (error) {
    return usage(errorMessage(error));
  }
}

async function untold(pool: SimPool, seed: number, parts: LifeParts): Promise<Report> {
  return await pool.play(seed, parts);
}

/** Tells all that happens in the life. */
async function traced(pool: SimPool, seed: number, parts: LifeParts): Promise<Report> {
  const happenings: Happening[] = [];
  const report = await pool.play(seed, parts, { onHappening: (happening) => happenings.push(happening) });
  console.log(timeline(seed, happenings, report.problems));
  return report;
}

async function main(): Promise<number> {
  const values = readOptions();
  if (values.help) {
    console.log(usageText);
    return 0;
  }
  const from = wholeNumber("seed", values.seed) ?? 1;
  const minutes = wholeNumber("minutes", values.minutes);
  const count = wholeNumber("seeds", values.seeds) ?? (values.seed === undefined ? 1000 : 1);
  const parts: LifeParts = {
    ...(values.steps !== undefined && { steps: values.steps.split(",").map(Number) }),
    ...(values.without !== undefined && { without: values.without.split(",") }),
  };
  const totals: Totals = {
    lives: 0,
    simulatedMs: 0,
    failures: [],
    steps: new Map(),
    faults: new Map(),
    actions: new Map(),
  };
  const beganMs = performance.now();
  await using pool = new SimPool(wholeNumber("threads", values.threads));
  const progress = setInterval(() => console.error(figures(totals, beganMs)), progressMs);
  let next = from;
  const isOver = (): boolean =>
    minutes === undefined ? next >= from + count : performance.now() - beganMs > minutes * 60_000;
  const work = async (): Promise<void> => {
    while (!isOver()) add(totals, await (values.trace ? traced : untold)(pool, next++, parts));
  };
  await Promise.all(Array.from({ length: pool.size }, work));
  clearInterval(progress);
  console.log(figures(totals, beganMs));
  console.log(average(totals));
  printCoverage(totals);
  const failures = totals.failures.toSorted((a, b) => a.seed - b.seed);
  for (const failure of failures.slice(0, shownFailures)) console.log(`\n${await tellFailure(pool, failure, parts)}`);
  if (failures.length > 0) console.log(`\nfailed: seeds ${failures.map(({ seed }) => seed).join(" ")}`);
  return failures.length > 0 ? 1 : 0;
}

process.exitCode = await main();
