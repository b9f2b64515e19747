import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { podRequests } from "../resources/pod-totals.ts";
import { qosClass, type QosClass } from "../resources/qos.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import type { Ending } from "./ending.ts";
import { amountOf } from "./predicates.ts";

/** The amount of a resource that must become free. */
export interface Requirement {
  readonly name: string;
  readonly amount: bigint;
}

/** Upstream's reason and message of preempted pods. */
export const preempting = { reason: "Preempting", message: "Preempted in order to admit critical pod" } as const;
/** Upstream's message of condition DisruptionTarget for preempted pods. */
export const preemptionDisruption = "Pod was preempted by Kubelet to accommodate a critical pod.";

/** The pod is preempted for a critical one. @param entry the journal entry that names it */
export function preempted(victim: Pod, entry: number, because: Cause): Ending {
  return {
    cause: { code: preempting.reason, message: preempting.message, entry, because },
    outcome: "cutShort",
    lasts: true,
    graceSeconds: gracePeriodSeconds(victim),
    disruption: preemptionDisruption,
  };
}

/**
 * The pods to preempt so that a critical one fits: as few as possible of the higher QoS classes, then those closest to
 * the needed amount. Undefined: preempting all candidates is not enough. Upstream's choice. Pure.
 */
export function podsToPreempt(
  critical: Pod,
  others: readonly Pod[],
  requirements: readonly Requirement[],
): Pod[] | undefined {
  const open = others.filter((other) => mayPreempt(critical, other));
  const of = (wanted: QosClass): Pod[] => open.filter((pod) => qosClass(pod) === wanted);
  const [bestEffort, burstable, guaranteed] = [of("BestEffort"), of("Burstable"), of("Guaranteed")];
  if (missingInAnyCase(critical, others, requirements).length > 0) return undefined;
  const fromGuaranteed = closest(guaranteed, without(requirements, [...bestEffort, ...burstable]));
  const fromBurstable = closest(burstable, without(requirements, [...bestEffort, ...fromGuaranteed]));
  const fromBestEffort = closest(bestEffort, without(requirements, [...fromBurstable, ...fromGuaranteed]));
  return [...fromBestEffort, ...fromBurstable, ...fromGuaranteed];
}

/** What would still be missing if all candidates were preempted. Pure. */
export function missingInAnyCase(
  critical: Pod,
  others: readonly Pod[],
  requirements: readonly Requirement[],
): readonly Requirement[] {
  return without(
    requirements,
    others.filter((other) => mayPreempt(critical, other)),
  );
}

/** Whether the first is critical and may preempt the second: one that is not critical, or has lower priority. */
export function mayPreempt(pod: Pod, other: Pod): boolean {
  if (!isCriticalPod(pod)) return false;
  if (!isCriticalPod(other)) return true;
  const [own, its] = [pod.spec.priority, other.spec.priority];
  return own !== undefined && its !== undefined && own > its;
}

/** Picks the pod closest to the missing amounts, the smaller of two, until nothing is missing. */
function closest(pods: readonly Pod[], requirements: readonly Requirement[]): Pod[] {
  const taken: Pod[] = [];
  let missing = requirements;
  while (missing.length > 0) {
    const [best] = pods
      .filter((pod) => !taken.includes(pod))
      .toSorted((a, b) => distance(missing, a) - distance(missing, b) || compareRequests(a, b));
    if (best === undefined) break;
    taken.push(best);
    missing = without(missing, [best]);
  }
  return taken;
}

/** The remaining shortage, each resource weighted alike. */
function distance(requirements: readonly Requirement[], pod: Pod): number {
  return requirements.reduce((sum, { name, amount }) => {
    const missing = Number(amount - requestOf(pod, name));
    return missing > 0 ? sum + (missing / Number(amount)) ** 2 : sum;
  }, 0);
}

function compareRequests(a: Pod, b: Pod): number {
  for (const name of ["memory", "cpu"]) {
    const difference = requestOf(a, name) - requestOf(b, name);
    if (difference !== 0n) return difference < 0n ? -1 : 1;
  }
  return 0;
}

function without(requirements: readonly Requirement[], pods: readonly Pod[]): Requirement[] {
  return requirements
    .map(({ name, amount }) => ({
      name,
      amount: pods.reduce((missing, pod) => missing - requestOf(pod, name), amount),
    }))
    .filter(({ amount }) => amount > 0n);
}

/** Each pod counts as one of the node's `pods`. */
function requestOf(pod: Pod, name: string): bigint {
  return name === "pods" ? 1n : amountOf(podRequests(pod), name);
}
