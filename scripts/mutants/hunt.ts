import { eachOf } from "../../src/base/side-by-side.ts";
import { isUnderPressure } from "../../src/sim/life/pressure-steps.ts";
import { hasQuotas } from "../../src/sim/life/quota-steps.ts";
import {
  collectsImages,
  hasDevices,
  hasDrivers,
  hasImageVolumes,
  hasMachineRooms,
} from "../../src/sim/life/subjects.ts";
import type { Mutant } from "../sim-mutant-list.ts";
import { SimPool } from "../sim-pool.ts";
import { blindMutants } from "./blind.ts";
import { evictionMutants } from "./evictions.ts";
import { imageMutants } from "./images.ts";
import { nodeMutants } from "./node.ts";
import { guardMutants } from "./guards.ts";
import { managerMutants } from "./managers.ts";
import { podMutants } from "./pods.ts";
import { runtimeMutants } from "./runtime.ts";
import { volumeMutants } from "./volumes.ts";

/** Faults that the simulator must find, each as small as a typo. */
export const mutants: readonly Mutant[] = [
  ...blindMutants,
  ...podMutants,
  ...runtimeMutants,
  ...managerMutants,
  ...evictionMutants,
  ...imageMutants,
  ...nodeMutants,
  ...guardMutants,
  ...volumeMutants,
];

/** The source with the fault, or why it cannot be applied. */
export function patched({ from, to }: Mutant, source: string): { readonly text: string; readonly problem?: string } {
  const parts = source.split(from);
  if (parts.length === 2) return { text: parts.join(to) };
  return { text: source, problem: `there are ${parts.length - 1} places that read ${from}` };
}

/** The search for a mutant. */
export interface Hunt {
  readonly mutant: Mutant;
  /** Number of lives until it was caught, from each starting seed; undefined: it was not. */
  readonly seeds: readonly (number | undefined)[];
  /** The rules that it broke first. */
  readonly rules: readonly string[];
  /** Number of lives played. */
  readonly lives: number;
}

/** Whether the fault can show in a seed's life. */
function shows({ lives }: Mutant, seed: number): boolean {
  if (lives === "drivers") return hasDrivers(seed);
  if (lives === "devices") return hasDevices(seed);
  if (lives === "pressure") return isUnderPressure(seed);
  if (lives === "quotas") return hasQuotas(seed);
  if (lives === "images") return collectsImages(seed);
  if (lives === "imageVolumes") return hasImageVolumes(seed);
  return lives === undefined || hasMachineRooms(seed);
}

/** Plays lives from each starting seed until one breaks a rule, up to a maximum. */
async function hunt(mutant: Mutant, starts: readonly number[], most: number): Promise<Hunt> {
  await using pool = new SimPool(1, mutant);
  const seeds: (number | undefined)[] = [];
  const rules: string[] = [];
  let lives = 0;
  for (const start of starts) {
    let caught: number | undefined;
    for (let [seed, count] = [start, 1]; count <= most && caught === undefined; seed++) {
      if (!shows(mutant, seed)) continue;
      const { problems } = await pool.play(seed);
      lives++;
      const [first] = problems;
      count++;
      if (first === undefined) continue;
      caught = count - 1;
      rules.push(first.rule);
    }
    seeds.push(caught);
    // A survivor is a gap in the rules; further starts add nothing.
    if (caught === undefined) break;
  }
  return { mutant, seeds, rules, lives };
}

/** Searches for the mutants, a few at a time, and reports each when done. */
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
