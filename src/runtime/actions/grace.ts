import type { Pod } from "../../api/pod.ts";

/** Minimum grace period for StopContainer, as upstream: a container always gets a moment to exit by itself. */
export const minimumGraceSeconds = 2;

const defaultGraceSeconds = 30;

/**
 * The pod's grace period: its deletion's, else its spec's. A forced deletion has 0, which the worker raises to the
 * minimum (upstream's calculateEffectiveGracePeriod).
 */
export function gracePeriodSeconds({ metadata, spec }: Pod): number {
  return metadata.deletionGracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? defaultGraceSeconds;
}

/**
 * The grace period of one container while its pod keeps running. A probe may have its own, longer or shorter than the
 * pod's (KEP-2238), except while the pod is being deleted.
 * @param ownSeconds grace period of the failed probe; undefined: none, or another cause
 */
export function containerGraceSeconds(pod: Pod, ownSeconds: number | undefined): number {
  return pod.metadata.deletionGracePeriodSeconds ?? ownSeconds ?? gracePeriodSeconds(pod);
}

/**
 * The timeout for StopContainer: the remaining whole seconds, rounded up so that SIGKILL is never early, and at least
 * {@link minimumGraceSeconds}.
 * @param killAtMs monotonic milliseconds at which the grace period ends
 * @param nowMs monotonic
 */
export function stopTimeoutSeconds(killAtMs: number, nowMs: number): number {
  return Math.max(minimumGraceSeconds, wholeSeconds(killAtMs - nowMs));
}

/** Floating point: `nowMs + 37_000 - nowMs` may exceed 37,000 slightly, which must not add a second. */
const inexactMs = 0.001;

/** 68 years. Runtimes convert to nanoseconds in 64 bits, which an int64 of seconds from the API would overflow. */
const longestSeconds = 2 ** 31 - 1;

/** Rounded up, ignoring floating-point noise, and capped to what runtimes can count. */
export function wholeSeconds(milliseconds: number): number {
  return Math.min(Math.ceil((milliseconds - inexactMs) / 1000), longestSeconds);
}
