import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";
import type { Ending } from "../pods/ending.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import type { Threshold } from "./thresholds.ts";

/** How long a pod has that is evicted at once (upstream's immediateEvictionGracePeriodSeconds). */
export const immediateGraceSeconds = 1;

/** Of a soft threshold the pod's own grace, at most evictionMaxPodGracePeriod. Pure. */
export function evictionGraceSeconds(pod: Pod, { graceMs }: Threshold, maxPodGraceSeconds: number): number {
  return graceMs === 0 ? immediateGraceSeconds : Math.min(maxPodGraceSeconds, gracePeriodSeconds(pod));
}

/**
 * The pod is evicted: its status says Failed and Evicted, with the message.
 * @param why the decision, with its entry in the journal
 * @param disruption whether it goes for others' sake, and not for a limit of its own
 */
export function evicted(message: string, why: Cause, graceSeconds: number, disruption: boolean): Ending {
  return {
    cause: { code: "Evicted", message, because: why },
    outcome: "failed",
    lasts: true,
    graceSeconds,
    disruption: disruption ? message : undefined,
  };
}
