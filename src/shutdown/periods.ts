import type { Pod } from "../api/pod.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";

/** The grace period at a node shutdown for pods from this priority up to the next period's. */
export interface ShutdownPeriod {
  readonly priority: number;
  readonly graceSeconds: number;
}

export interface ShutdownGroup extends ShutdownPeriod {
  readonly pods: readonly Pod[];
}

/** For pods without a priority. */
const defaultPriority = 0;
/** system-cluster-critical: pods from this priority on are critical. */
const criticalPriority = 2_000_000_000;

/**
 * A configuration's periods by increasing priority: those by pod priority, else one for most pods and a final one for
 * critical pods. Empty: node shutdowns are not delayed. Pure.
 */
export function shutdownPeriods(
  wholeMs: number,
  criticalMs: number,
  byPriority: readonly ShutdownPeriod[],
): readonly ShutdownPeriod[] {
  if (byPriority.length > 0) return byPriority.toSorted((a, b) => a.priority - b.priority);
  if (wholeMs <= 0 || criticalMs > wholeMs) return [];
  return [
    { priority: defaultPriority, graceSeconds: Math.trunc((wholeMs - criticalMs) / 1000) },
    { priority: criticalPriority, graceSeconds: Math.trunc(criticalMs / 1000) },
  ];
}

/** The maximum duration of a node shutdown, milliseconds. Pure. */
export function requestedMs(periods: readonly ShutdownPeriod[]): number {
  return periods.reduce((sum, { graceSeconds }) => sum + graceSeconds * 1000, 0);
}

/**
 * The index of the pod's period: the highest that does not exceed its priority, else the lowest. Only the priority in
 * the spec counts: static pods are not critical by themselves. Pure.
 */
export function groupOf(periods: readonly ShutdownPeriod[], { spec: { priority = defaultPriority } }: Pod): number {
  const above = periods.findIndex((period) => period.priority >= priority);
  if (above < 0) return periods.length - 1;
  return above > 0 && periods[above]?.priority !== priority ? above - 1 : above;
}

/** The last group that a shutdown has begun to end. */
export interface BegunGroup {
  readonly priority: number;
  /** Wall clock: an earlier run may have begun it. */
  readonly startMs: number;
}

/** How much of its time the group at the index has had, ms: all of it once a later one has begun. Pure. */
export function elapsedMs(
  periods: readonly ShutdownPeriod[],
  index: number,
  begun: BegunGroup | undefined,
  nowMs: number,
): number {
  const last = periods.findIndex(({ priority }) => priority === begun?.priority);
  if (begun === undefined || index > last) return 0;
  const wholeMs = (periods[index]?.graceSeconds ?? 0) * 1000;
  return index < last ? wholeMs : Math.min(Math.max(nowMs - begun.startMs, 0), wholeMs);
}

/** The pod's grace period within its group's. Pure. */
export function graceWithin({ graceSeconds }: ShutdownPeriod, pod: Pod): number {
  return Math.min(gracePeriodSeconds(pod), graceSeconds);
}
