import { eachOf } from "../../src/base/side-by-side.ts";
import type { Mutant } from "../sim-mutant-list.ts";
import { SimPool } from "../sim-pool.ts";
import { blindMutants } from "./blind.ts";
import { evictionMutants } from "./evictions.ts";
import { nodeMutants } from "./node.ts";
import { guardMutants } from "./guards.ts";
import { managerMutants } from "./managers.ts";
import { podMutants } from "./pods.ts";
import { runtimeMutants } from "./runtime.ts";

/** Faults that the simulator has to find, each such as a slip of the pen makes. */
export const mutants: readonly Mutant[] = [
  ...blindMutants,
  ...podMutants,
  ...runtimeMutants,
  ...managerMutants,
  ...evictionMutants,
  ...nodeMutants,
  ...guardMutants,
];

/** The source with the fault, or why it can't be put in. */
export function patched({ from, to }: Mutant, source: string): { readonly text: string; readonly problem?: string } {
  const parts = source.split(from);
  if (parts.length === 2) return { text: parts.join(to) };
  return { text: source, problem: `there are ${parts.length - 1} places that read ${from}` };
}

/** How a mutant was looked for. */
export interface Hunt {
  readonly mutant: Mutant;
  /** Lives until it was caught, from each starting seed on; undefined: it was not. */
  readonly seeds: readonly (number | undefined)[];
  /** What it broke first, where it was caught. */
  readonly rules: readonly string[];
  /** Lives that were played. */
  readonly lives: number;
}

/** Plays lives from each of the starting seeds on until one breaks a rule, at most so many. */
async function hunt(mutant: Mutant, starts: readonly number[], most: number): Promise<Hunt> {
  await using pool = new SimPool(1, mutant);
  const seeds: (number | undefined)[] = [];
  const rules: string[] = [];
  let lives = 0;
  for (const start of starts) {
    let caught: number | undefined;
    for (let count = 1; count <= most && caught === undefined; count++) {
      const { problems } = await pool.play(start + count - 1);
      lives++;
      const [first] = problems;
      if (first === undefined) continue;
      caught = count;
      rules.push(first.rule);
    }
    seeds.push(caught);
    // One that survives from here on is a hole; more of the same tells nothing new.
    if (caught === undefined) break;
  }
  return { mutant, seeds, rules, lives };
}

/** Looks for each of the mutants, so many at a time, and tells of each when it is done with it. */
export async function huntAll(
  chosen: readonly Mutant[],
  { starts, most, threads }: { readonly starts: readonly number[]; readonly most: number; readonly threads: number },
  onHunted: (found: Hunt) => void = () => {},
): Promise<Hunt[]> {
  const hunts: Hunt[] = [];
  await eachOf(chosen, threads, async (mutant) => {
    const found = await hunt(mutant, starts, most);
    hunts.push(found);
    onHunted(found);
  });
  return hunts;
}
