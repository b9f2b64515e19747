import { SimRandom } from "../random.ts";
import { stepKinds, type StepKind, weights } from "./steps.ts";

/** One thing that is done to the node, its pods or its machine; what exactly follows from the step's own seed. */
export interface Step {
  readonly index: number;
  /** Simulated time. */
  readonly atMs: number;
  readonly kind: StepKind;
  readonly seed: number;
}

/**
 * What is done in the life of a seed. Each step stands for itself, so that any of them can be left out and the others
 * mean the same. Each life has some kinds of steps only: what goes wrong rarely shows where everything goes wrong.
 */
export function drawPlan(seed: number): Step[] {
  const random = new SimRandom(seed);
  const likely = random.pick([0.3, 0.6, 1]);
  const kinds = stepKinds.filter((kind) => kind === "addPod" || random.chance(likely));
  const total = kinds.reduce((sum, kind) => sum + weights[kind], 0);
  const drawKind = (): StepKind => {
    let draw = random.uniform() * total;
    return kinds.find((kind) => (draw -= weights[kind]) < 0) ?? "addPod";
  };
  // Some lives are hectic, some are long.
  const pauseMs = random.pick([2000, 20_000, 20_000, 120_000]);
  let atMs = 0;
  return Array.from({ length: random.integer(4, 30) }, (_, index) => {
    atMs += random.integer(0, pauseMs);
    const kind = index === 0 ? "addPod" : drawKind();
    return { index, atMs, kind, seed: Math.floor(random.uniform() * 0x1_0000_0000) };
  });
}
