/**
 * Plays random lives on sources with one small fault each, until the simulator finds it; `--help` lists the options.
 * Prints a table of the mutants with the rules that caught them, and the median and maximum number of seeds. Exit code
 * 1 when a mutant survives or its text does not occur exactly once, 2 for invalid options.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { runCommand } from "./command-options.ts";
import { blindMutants } from "./mutants/blind.ts";
import { huntAll, type Hunt, mutants, patched } from "./mutants/hunt.ts";
import { mutantHelp, readMutantOptions } from "./mutants/options.ts";
import { median, verdict } from "./mutants/verdict.ts";

const root = dirname(import.meta.dirname);
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

async function main(args: readonly string[]): Promise<number> {
  const options = readMutantOptions(args, mutants);
  if (options === undefined) {
    console.log(mutantHelp);
    return 0;
  }
  const { chosen, starts, threads } = options;
  const sound = chosen.filter((mutant) => {
    const { problem } = patched(mutant, readFileSync(join(root, mutant.file), "utf8"));
    if (problem !== undefined) console.error(`${mutant.name}: ${problem}`);
    return problem === undefined;
  });
  const beganMs = performance.now();
  console.log(`${"mutant".padEnd(38)} ${"file".padEnd(34)}       median   most caught by`);
  const hunts = await huntAll(sound, options, (found) => console.log(row(found)));
  const lives = hunts.reduce((sum, hunted) => sum + hunted.lives, 0);
  const seconds = (performance.now() - beganMs) / 1000;
  console.log(`\n${verdict(hunts, chosen.length)}`);
  console.log(`${lives} lives in ${seconds.toFixed(0)} s on ${threads} threads, ${starts.length} starting seeds each`);
  const isGood = sound.length === chosen.length && hunts.every(({ seeds }) => !seeds.includes(undefined));
  return isGood ? 0 : 1;
}

await runCommand("npm run sim:mutants --", main);
