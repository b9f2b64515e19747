import { isMet, type Observations } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

/**
 * The due thresholds that are due only because the configuration changed: the previous thresholds of the signal are not
 * met. Pure.
 * @param before undefined: no previous configuration
 */
export function dueByChange(
  due: readonly Threshold[],
  before: readonly Threshold[] | undefined,
  observations: Observations,
): readonly Threshold[] {
  if (before === undefined) return [];
  return due.filter(({ signal }) => !before.some((old) => old.signal === signal && isMet(old, observations, false)));
}
