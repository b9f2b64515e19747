import type { Pod } from "../api/pod.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";

/** How long pods of this priority and above, up to that of the next period, have to stop when the node shuts down. */
export interface ShutdownPeriod {
  readonly priority: number;
  readonly graceSeconds: number;
}

export interface ShutdownGroup extends ShutdownPeriod {
  readonly pods: readonly Pod[];
}

/** Of pods without a priority. */
const defaultPriority = 0;
/** That of system-cluster-critical, from which on pods count as critical. */
const criticalPriority = 2_000_000_000;

/**
 * The periods of a configuration, the lowest priority first: those by priority or, without any, one for most pods and one for
 * critical pods, which is the last part of the whole. None: shutdowns of the node are not waited for. Pure.
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

/** How long the shutdown of a node takes at most, milliseconds. Pure. */
export function requestedMs(periods: readonly ShutdownPeriod[]): number {
  return periods.reduce((sum, { graceSeconds }) => sum + graceSeconds * 1000, 0);
}

/**
 * The place of the pod's period: the highest that does not exceed its priority, the lowest for a pod below all of them. Its
 * priority is the number in its spec alone: a static pod is no more critical than others. Pure.
 */
export function groupOf(periods: readonly ShutdownPeriod[], { spec: { priority = defaultPriority } }: Pod): number {
  const above = periods.findIndex((period) => period.priority >= priority);
  if (above < 0) return periods.length - 1;
  return above > 0 && periods[above]?.priority !== priority ? above - 1 : above;
}

/** How long a pod of the group has: its own grace, where that is shorter. Pure. */
export function graceWithin({ graceSeconds }: ShutdownPeriod, pod: Pod): number {
  return Math.min(gracePeriodSeconds(pod), graceSeconds);
}
