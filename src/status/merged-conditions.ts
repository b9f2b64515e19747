import type { PodCondition, PodStatus } from "../api/status.ts";
import { isOwnDisruption, ownConditions, withCondition } from "./conditions.ts";
import { isTerminalPhase } from "./phase.ts";

/** The conditions of others: readiness gates, DisruptionTarget … Pure. */
export function foreignConditions(status: PodStatus | undefined): PodCondition[] {
  return (status?.conditions ?? []).filter(({ type }) => !ownConditions.has(type));
}

/**
 * The conditions for the server: those of others as the server has them, since the local copy may be old, and the
 * node's own. The node's disruption replaces that of others, with the pod's end; later changes by others count. Pure.
 */
export function mergedConditions(found: PodStatus | undefined, wanted: PodStatus): PodCondition[] {
  const known = wanted.conditions ?? [];
  const own = known.filter(({ type }) => ownConditions.has(type));
  const foreign = foreignConditions(found);
  const disruption = endsWith(found, wanted) ? known.find(isOwnDisruption) : undefined;
  return [...(disruption === undefined ? foreign : withCondition(foreign, disruption)), ...own];
}

/** The server learns that the pod has ended. */
function endsWith(found: PodStatus | undefined, wanted: PodStatus): boolean {
  return isTerminalPhase(wanted.phase) && !isTerminalPhase(found?.phase);
}
