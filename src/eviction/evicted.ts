import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Ending } from "../pods/ending.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import type { Threshold } from "./thresholds.ts";

/** The grace period of an immediate eviction (upstream's immediateEvictionGracePeriodSeconds). */
export const immediateGraceSeconds = 1;

/** For a soft threshold the pod's own grace period, at most evictionMaxPodGracePeriod. Pure. */
export function evictionGraceSeconds(pod: Pod, { graceMs }: Threshold, maxPodGraceSeconds: number): number {
  return graceMs === 0 ? immediateGraceSeconds : Math.min(maxPodGraceSeconds, gracePeriodSeconds(pod));
}

/**
 * The ending of an evicted pod: unless its containers exit with 0, its status is Failed, reason Evicted, with the
 * message.
 * @param why the decision, with its journal entry
 * @param disruption it is evicted for the node, and not for a limit of its own
 */
export function evicted(message: string, why: Cause, graceSeconds: number, disruption: boolean): Ending {
  return {
    cause: { code: "Evicted", message, because: why },
    outcome: "cutShort",
    lasts: true,
    graceSeconds,
    disruption: disruption ? message : undefined,
  };
}
