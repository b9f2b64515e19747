import type { PodCondition, PodStatus } from "../api/status.ts";
import { isOwnDisruption, ownConditions, withCondition } from "./conditions.ts";
import { isTerminalPhase } from "./phase.ts";

/** The conditions that others have written: readiness gates, DisruptionTarget … Pure. */
export function foreignConditions(status: PodStatus | undefined): PodCondition[] {
  return (status?.conditions ?? []).filter(({ type }) => !ownConditions.has(type));
}

/**
 * The conditions that the server is to have: those of others as it has them, as what is known of them here may be old, and
 * the node's own as it wants them. That the node took the pod away takes the place of what others said of that, with the
 * pod's end; what they say of it later counts. Pure.
 */
export function mergedConditions(found: PodStatus | undefined, wanted: PodStatus): PodCondition[] {
  const known = wanted.conditions ?? [];
  const own = known.filter(({ type }) => ownConditions.has(type));
  const foreign = foreignConditions(found);
  const disruption = endsWith(found, wanted) ? known.find(isOwnDisruption) : undefined;
  return [...(disruption === undefined ? foreign : withCondition(foreign, disruption)), ...own];
}

/** The server learns that the pod is over. */
function endsWith(found: PodStatus | undefined, wanted: PodStatus): boolean {
  return isTerminalPhase(wanted.phase) && !isTerminalPhase(found?.phase);
}
