import { availableParallelism } from "node:os";
import { type CommandOptions, helpText, readOptions, UsageError, wholeNumber } from "../command-options.ts";
import type { Mutant } from "../sim-mutant-list.ts";
import { lastSeed, mostThreads } from "../sim-options.ts";

/** Distance of starting seeds. */
const betweenStarts = 10_000;
const mostStarts = 100;

const taken = {
  only: { value: "NAME", help: "only mutants with this in their names" },
  seed: { value: "FIRST", help: "the first starting seed; 1 without it" },
  starts: { value: "K", help: `from so many starting seeds on, ${betweenStarts} apart; 3 without it` },
  seeds: { value: "N", help: "at most so many seeds from each of them on; 1000 without it" },
  threads: { value: "T", help: `looks for so many mutants at a time, 1 to ${mostThreads}; one a processor without it` },
} satisfies CommandOptions;

interface MutantOptions {
  readonly chosen: readonly Mutant[];
  readonly starts: readonly number[];
  /** Maximum number of seeds from each start. */
  readonly most: number;
  readonly threads: number;
}

/**
 * Undefined for `--help`.
 * @throws UsageError
 */
export function readMutantOptions(args: readonly string[], mutants: readonly Mutant[]): MutantOptions | undefined {
  const values = readOptions(taken, args);
  if (values.has("help")) return undefined;
  const only = values.get("only") ?? "";
  const chosen = mutants.filter(({ name }) => name.includes(only));
  if (chosen.length === 0) {
    throw new UsageError(`no mutant's name contains "${only}"; they are ${mutants.map(({ name }) => name).join(" ")}`);
  }
  const first = wholeNumber(values, "seed", lastSeed) ?? 1;
  const most = wholeNumber(values, "seeds", lastSeed) ?? 1000;
  const count = wholeNumber(values, "starts", mostStarts) ?? 3;
  const starts = Array.from({ length: count }, (_, index) => first + index * betweenStarts);
  if ((starts.at(-1) ?? first) + most - 1 > lastSeed) {
    throw new UsageError(`so many seeds go beyond the last one, ${lastSeed}: take less of --seed, --starts or --seeds`);
  }
  return { chosen, starts, most, threads: wholeNumber(values, "threads", mostThreads) ?? availableParallelism() };
}

export const mutantHelp = helpText(
  "npm run sim:mutants --",
  "Plays random lives on sources that have a small fault each, until the simulator finds the fault.",
  taken,
);
