import type { Pod } from "../../api/pod.ts";

/** StopContainer never gets less, as upstream has it: a container always has a moment to end by itself. */
export const minimumGraceSeconds = 2;

const defaultGraceSeconds = 30;

/**
 * How long a pod may take to stop: what its deletion said, otherwise its spec. A deletion that is forced says 0, which the
 * worker makes the least there is (upstream's calculateEffectiveGracePeriod).
 */
export function gracePeriodSeconds({ metadata, spec }: Pod): number {
  return metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? defaultGraceSeconds;
}

/**
 * How long one container may take to stop while its pod goes on. A probe may have a grace of its own, longer or shorter
 * than the pod's (KEP-2238), but not once the pod is being deleted.
 * @param ownSeconds the grace of the probe that failed; undefined where there is none or something else is the cause
 */
export function containerGraceSeconds(pod: Pod, ownSeconds: number | undefined): number {
  return pod.metadata.deletionGracePeriodSeconds ?? ownSeconds ?? gracePeriodSeconds(pod);
}

/**
 * What StopContainer is given: the whole seconds that are left, rounded up so that no SIGKILL comes before the grace is
 * over, and at least {@link minimumGraceSeconds}.
 * @param killAtMs monotonic milliseconds at which the grace is over
 * @param nowMs monotonic
 */
export function stopTimeoutSeconds(killAtMs: number, nowMs: number): number {
  return Math.max(minimumGraceSeconds, wholeSeconds(killAtMs - nowMs));
}

/** Times have fractions, so that `nowMs + 37_000 - nowMs` may be a little more than that: no reason for another second. */
const inexactMs = 0.001;

/** 68 years. Runtimes count nanoseconds in 64 bits: of an int64 of seconds, which the API takes, nothing would be left. */
const longestSeconds = 2 ** 31 - 1;

/** Rounded up, by more than what is due to the arithmetic of fractions; no more than runtimes can count. */
export function wholeSeconds(milliseconds: number): number {
  return Math.min(Math.ceil((milliseconds - inexactMs) / 1000), longestSeconds);
}
