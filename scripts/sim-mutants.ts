/**
 * Plays random lives on sources that have a small fault each, until the simulator finds the fault.
 *
 *   sim-mutants.ts [--only NAME] [--seeds N] [--seed FIRST] [--starts K] [--threads T]
 *
 * Prints a table: the mutants, by which rule each was caught, and the median and the most of the seeds that it took from
 * K (3) starting seeds on, each with at most N (200) seeds. `--only` takes a part of a name. Exit code 1 when a mutant
 * survives or its text isn't there exactly once.
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { blindMutants } from "./mutants/blind.ts";
import { huntAll, type Hunt, mutants, patched } from "./mutants/hunt.ts";

const root = dirname(import.meta.dirname);

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (/^\d+$/.test(text) && Number(text) > 0) return Number(text);
  console.error(`--${name} takes a whole number above 0`);
  process.exit(2);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)] ?? 0;
}

const blind = new Set(blindMutants.map(({ name }) => name));

function row({ mutant, seeds, rules }: Hunt): string {
  const { name, file } = mutant;
  const all = seeds.map((count) => count ?? Number.POSITIVE_INFINITY);
  const shown = (count: number): string => (Number.isFinite(count) ? String(count) : "none");
  const figures = [shown(median(all)), shown(Math.max(...all))].map((figure) => figure.padStart(6));
  const by = [...new Set(rules)].join(", ") || "survives";
  return [
    name.padEnd(38),
    file.replace("src/", "").padEnd(34),
    blind.has(name) ? "blind" : "     ",
    ...figures,
    by,
  ].join(" ");
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      seeds: { type: "string" },
      seed: { type: "string" },
      starts: { type: "string" },
      threads: { type: "string" },
    },
  });
  const most = wholeNumber("seeds", values.seeds, 200);
  const first = wholeNumber("seed", values.seed, 1);
  const starts = Array.from({ length: wholeNumber("starts", values.starts, 3) }, (_, index) => first + index * 10_000);
  const threads = wholeNumber("threads", values.threads, availableParallelism());
  const chosen = mutants.filter(({ name }) => name.includes(values.only ?? ""));
  if (chosen.length === 0) console.error(`no mutant's name contains ${values.only}`);
  let good = chosen.length > 0;
  const sound = chosen.filter((mutant) => {
    const { problem } = patched(mutant, readFileSync(join(root, mutant.file), "utf8"));
    if (problem !== undefined) console.error(`${mutant.name}: ${problem}`);
    good &&= problem === undefined;
    return problem === undefined;
  });
  const beganMs = performance.now();
  console.log(`${"mutant".padEnd(38)} ${"file".padEnd(34)}       median   most caught by`);
  const hunts = await huntAll(sound, { starts, most, threads }, (found) => console.log(row(found)));
  const survivors = hunts.filter(({ seeds }) => seeds.includes(undefined));
  const lives = hunts.reduce((sum, hunted) => sum + hunted.lives, 0);
  const seconds = (performance.now() - beganMs) / 1000;
  const medians = hunts.map(({ seeds }) => median(seeds.map((count) => count ?? Number.POSITIVE_INFINITY)));
  console.log(
    `\n${hunts.length - survivors.length} of ${chosen.length} caught, half of them within ${median(medians)} seeds`,
  );
  console.log(`${lives} lives in ${seconds.toFixed(0)} s on ${threads} threads, ${starts.length} starting seeds each`);
  if (survivors.length > 0) console.log(`survived: ${survivors.map(({ mutant }) => mutant.name).join(" ")}`);
  return good && survivors.length === 0 ? 0 : 1;
}

process.exitCode = await main();
