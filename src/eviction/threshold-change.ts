import { isMet, type Observations } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

/**
 * Of due thresholds those that are due only by a configuration that has changed: with the thresholds of before none of the
 * signal would be met. Pure.
 * @param before undefined: there was no configuration before
 */
export function dueByChange(
  due: readonly Threshold[],
  before: readonly Threshold[] | undefined,
  observations: Observations,
): readonly Threshold[] {
  if (before === undefined) return [];
  return due.filter(({ signal }) => !before.some((old) => old.signal === signal && isMet(old, observations, false)));
}
