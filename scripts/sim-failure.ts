/** Reports a simulated life that broke a rule. */
import { performance } from "node:perf_hooks";
import type { Happening } from "../src/sim/life/happening.ts";
import { podFeatures } from "../src/sim/life/pods.ts";
import { shrink, type Shrunk } from "../src/sim/life/shrink.ts";
import { faultLines, stepLines, timeline, wholeMs } from "../src/sim/life/timeline.ts";
import type { SimPool } from "./sim-pool.ts";
import type { LifeParts, Report } from "./sim-worker.ts";

/** Limits of shrinking. */
export interface ShrinkLimits {
  readonly tries: number;
  /** Real time of all attempts, in ms. */
  readonly totalMs: number;
  /** Real time after which an attempt counts as hanging, in ms. */
  readonly eachMs: number;
}

const usualLimits: ShrinkLimits = { tries: 150, totalMs: 90_000, eachMs: 10_000 };

/**
 * The seed, the first broken rule, the minimal plan that still breaks it, what happened then, and the command that
 * repeats it. Empty for a life without a broken rule.
 */
export async function tellFailure(
  pool: SimPool,
  report: Report,
  parts: LifeParts = {},
  limits: ShrinkLimits = usualLimits,
): Promise<string> {
  const { seed, problems, plan } = report;
  const [first] = problems;
  if (first === undefined) return "";
  const found = await makeSmaller(pool, report, parts, limits);
  const happenings: Happening[] = [];
  const result = await pool.play(seed, found, {
    limitMs: limits.eachMs,
    onHappening: (happening) => happenings.push(happening),
  });
  const problem = result.problems.find(({ rule }) => rule === first.rule) ?? first;
  const struck = faultLines(happenings, problem.atMs);
  return [
    `seed ${seed}: ${problem.rule}, at ${problem.atMs.toFixed(0)} ms`,
    `  ${wholeMs(problem.detail)}`,
    `  ${found.steps.length} of ${plan.length} steps are left after ${found.tries} tries`,
    ...stepLines(result.plan, happenings).map((line) => `    ${line}`),
    ...(struck.length === 0 ? [] : ["  faults that struck", ...struck.map((line) => `    ${line}`)]),
    timeline(seed, happenings, result.problems, problem).replaceAll(/^/gm, "  "),
    `  again: ${commandOf(seed, found)}`,
  ].join("\n");
}

/** The smallest part of the life that still breaks the same rule. Chosen steps are kept. */
async function makeSmaller(
  pool: SimPool,
  { seed, problems, plan }: Report,
  { steps: asked, without: left = [] }: LifeParts,
  limits: ShrinkLimits,
): Promise<Shrunk> {
  if (asked !== undefined) return { steps: asked, without: left, tries: 0 };
  const endMs = performance.now() + limits.totalMs;
  const found = await shrink(
    plan.map(({ index }) => index),
    podFeatures.filter((feature) => !left.includes(feature)),
    async ({ steps, without }) => {
      const result = await pool.play(seed, { steps, without: [...left, ...without] }, { limitMs: limits.eachMs });
      return result.problems.some(({ rule }) => rule === problems[0]?.rule);
    },
    (tries) => tries < limits.tries && performance.now() < endMs,
  );
  return { ...found, without: [...left, ...found.without] };
}

/** The command that plays this life, with its trace. */
function commandOf(seed: number, { steps, without }: Shrunk): string {
  const left = without.length > 0 ? ` --without ${without.join(",")}` : "";
  return `npm run sim -- --seed ${seed} --steps ${steps.join(",")}${left} --trace`;
}
