import type { Pod } from "../../api/pod.ts";
import { SimRandom } from "../random.ts";

type Choices = readonly [Partial<Pod["spec"]>, ...Partial<Pod["spec"]>[]];

/** The API server's two critical classes, and custom priority classes. */
const critical: Choices = [
  { priorityClassName: "system-node-critical", priority: 2_000_001_000 },
  { priorityClassName: "system-cluster-critical", priority: 2_000_000_000 },
];
const ordinary: Choices = [
  { priority: 0 },
  { priorityClassName: "seldom-needed", priority: -10 },
  { priorityClassName: "needed", priority: 1000 },
  {},
];

/** In some lives pods have priorities: a few are critical, and may preempt others. */
export function withPriority(pod: Pod, random: SimRandom, seed: number, always: boolean): Pod {
  if (!always && !SimRandom.named(seed, "priorities").chance(0.4)) return pod;
  return { ...pod, spec: { ...pod.spec, ...random.pick(random.chance(0.3) ? critical : ordinary) } };
}
