import { isCriticalPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import { podRequests } from "../resources/pod-totals.ts";
import { qosClass, type QosClass } from "../resources/qos.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import type { Ending } from "./ending.ts";
import { amountOf } from "./predicates.ts";

/** So much of a resource has to become free. */
export interface Requirement {
  readonly name: string;
  readonly amount: bigint;
}

/** Reason and message of pods that have to make room, as upstream has them. */
export const preempting = { reason: "Preempting", message: "Preempted in order to admit critical pod" } as const;
/** Message of condition DisruptionTarget of such pods, as upstream has it. */
export const preemptionDisruption = "Pod was preempted by Kubelet to accommodate a critical pod.";

/** The pod makes room for a critical one. @param entry of the journal, that says for which */
export function preempted(victim: Pod, entry: number, because: Cause): Ending {
  return {
    cause: { code: preempting.reason, message: preempting.message, entry, because },
    outcome: "failed",
    lasts: true,
    graceSeconds: gracePeriodSeconds(victim),
    disruption: preemptionDisruption,
  };
}

/**
 * The pods that have to go so that a critical one fits: as few as possible of the higher classes of service, and those
 * that come closest to what is needed. Undefined: all that may be taken together are not enough. Pure, and upstream's
 * choice.
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

/** What would still be missing if all pods went that may be taken. Pure. */
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

/** Whether the one is a critical pod before which the other stands back: one that is not, or of a lower priority. */
export function mayPreempt(pod: Pod, other: Pod): boolean {
  if (!isCriticalPod(pod)) return false;
  if (!isCriticalPod(other)) return true;
  const [own, its] = [pod.spec.priority, other.spec.priority];
  return own !== undefined && its !== undefined && own > its;
}

/** Takes the pod that comes closest to what is missing, the smaller of two, until nothing is. */
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

/** How much would still be missing, each resource counted alike. */
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

/** A pod is one of the pods that a node may have. */
function requestOf(pod: Pod, name: string): bigint {
  return name === "pods" ? 1n : amountOf(podRequests(pod), name);
}
