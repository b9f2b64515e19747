/** What there is to say of a simulated life that broke a rule. */
import { type LifeOptions, runLife } from "../src/sim/life/life.ts";
import { podFeatures } from "../src/sim/life/pods.ts";
import { shrink } from "../src/sim/life/shrink.ts";
import { timeline } from "../src/sim/life/timeline.ts";
import type { Report } from "./sim-worker.ts";

const shrinkTries = 150;

/**
 * The seed, the first rule that it broke, what is left of its plan when everything is left out that the failure does not
 * need, what happened then, and the command that plays that again. Empty for a life that broke no rule.
 */
export async function tellFailure({ seed, problems, plan }: Report, options: LifeOptions = {}): Promise<string> {
  const [first] = problems;
  if (first === undefined) return "";
  const fails = async (smaller: LifeOptions): Promise<boolean> =>
    (await runLife(seed, smaller)).problems.some(({ rule }) => rule === first.rule);
  const found = await shrink(
    plan.map(({ index }) => index),
    podFeatures.filter((feature) => options.without?.includes(feature) !== true),
    async ({ steps, without }) => await fails({ steps, without: [...(options.without ?? []), ...without] }),
    shrinkTries,
  );
  const shrunk = { steps: found.steps, without: [...(options.without ?? []), ...found.without] };
  const result = await runLife(seed, shrunk);
  const problem = result.problems.find(({ rule }) => rule === first.rule) ?? first;
  const without = shrunk.without.length > 0 ? ` --without ${shrunk.without.join(",")}` : "";
  return [
    `seed ${seed}: ${problem.rule}, at ${problem.atMs.toFixed(0)} ms`,
    `  ${problem.detail}`,
    `  ${found.steps.length} of ${plan.length} steps are left after ${found.tries} tries`,
    timeline(result, problem).replaceAll(/^/gm, "  "),
    `  again: npm run sim -- --seed ${seed} --steps ${found.steps.join(",")}${without} --trace`,
  ].join("\n");
}
