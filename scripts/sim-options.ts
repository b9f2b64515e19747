/** The simulator's command line. */
import { drawPlan } from "../src/sim/life/plan.ts";
import { podFeatures } from "../src/sim/life/pods.ts";
import { type CommandOptions, helpText, readOptions, UsageError, wholeNumber } from "./command-options.ts";
import type { LifeParts } from "./sim-worker.ts";

/** Seeds are 32-bit numbers. */
export const lastSeed = 0xffff_ffff;
export const mostThreads = 256;
const weekMinutes = 7 * 24 * 60;
const usualSeeds = 1000;

/** Features that pods can be deprived of; only pods of a cluster have references. */
const leavable = [...podFeatures, "references"];

const taken = {
  seed: { value: "FIRST", help: `first seed, 1 to ${lastSeed} (default 1)` },
  seeds: {
    value: "N",
    help: `number of seeds (default: 1 with --seed, as many as possible with --minutes, else ${usualSeeds})`,
  },
  minutes: { value: "M", help: "starts no life after M minutes; with --seeds, the first limit counts" },
  threads: { value: "T", help: `number of lives at a time, 1 to ${mostThreads} (default: one per processor)` },
  trace: { help: "print everything that happens in each life" },
  steps: { value: "LIST", help: "play only these steps of the life of --seed, e.g. 0,3" },
  without: { value: "LIST", help: `leave out these features of pods: ${leavable.join(",")}` },
} satisfies CommandOptions;

/** The lives to play. */
export interface SimOptions {
  readonly first: number;
  readonly last: number;
  /** No life begins after this time; undefined: no limit. */
  readonly minutes: number | undefined;
  /** Undefined: one per processor. */
  readonly threads: number | undefined;
  readonly isTraced: boolean;
  readonly parts: LifeParts;
}

/**
 * Undefined for `--help`.
 * @throws UsageError
 */
export function readSimOptions(args: readonly string[]): SimOptions | undefined {
  const values = readOptions(taken, args);
  if (values.has("help")) return undefined;
  const given = wholeNumber(values, "seed", lastSeed);
  const first = given ?? 1;
  const left = lastSeed - first + 1;
  const minutes = wholeNumber(values, "minutes", weekMinutes);
  const asked = wholeNumber(values, "seeds", lastSeed);
  if (asked !== undefined && asked > left) {
    throw new UsageError(`--seeds ${asked} goes beyond the last seed, ${lastSeed}: from ${first} there are ${left}`);
  }
  const usual = minutes !== undefined ? left : given !== undefined ? 1 : usualSeeds;
  const last = first + Math.min(asked ?? usual, left) - 1;
  const [steps, without] = [values.get("steps"), values.get("without")];
  if (steps !== undefined && (given === undefined || last !== first)) {
    throw new UsageError("--steps is a part of one life: set --seed, and neither --seeds nor --minutes");
  }
  return {
    ...{ first, last, minutes },
    threads: wholeNumber(values, "threads", mostThreads),
    isTraced: values.has("trace"),
    parts: {
      ...(steps !== undefined && { steps: readSteps(steps, first) }),
      ...(without !== undefined && { without: readFeatures(without) }),
    },
  };
}

function readSteps(list: string, seed: number): number[] {
  const there = drawPlan(seed).map(({ index }) => index);
  return list.split(",").map((text) => {
    const index = /^\d+$/.test(text) ? Number(text) : -1;
    if (there.includes(index)) return index;
    const most = Math.max(...there);
    throw new UsageError(`seed ${seed} has no step "${text}": --steps is a comma-separated list of 0 to ${most}`);
  });
}

function readFeatures(list: string): string[] {
  const features = list.split(",");
  const wrong = features.find((feature) => !leavable.includes(feature));
  if (wrong === undefined) return features;
  throw new UsageError(`pods have no feature "${wrong}": --without is a comma-separated list of ${leavable.join(",")}`);
}

export const simHelp = helpText(
  "npm run sim --",
  "Plays random lives of a whole node in the simulator. A life that breaks a rule is made smaller and told.",
  taken,
);
