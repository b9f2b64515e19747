import { thresholdAmount } from "../resources/threshold-value.ts";
import type { Observations } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

/** A look at the machine; monotonic ms. */
export interface PastLook {
  readonly atMs: number;
  readonly observations: Observations;
}

/** As upstream (evictionMonitoringPeriod). */
export const usualPeriodMs = 10_000;
export const nearPeriodMs = 1_000;
/** By what is left of these last ms it is judged how fast something is used up. */
const trendMs = 30_000;
/** A threshold is near that would be met within this time. */
const nearMs = 20_000;
/** One is near, too, with less than this part of the capacity above it. */
const nearPart = 0.1;

/** The looks that are still of use for the trend, with the newest one. Pure. */
export function withLook(looks: readonly PastLook[], look: PastLook): readonly PastLook[] {
  return [...looks.filter(({ atMs }) => look.atMs - atMs <= trendMs), look];
}

/**
 * How long the next look at the machine may wait: a second where a threshold is met or near, as long as upstream's always
 * do where none is. Pure.
 * @param looks oldest first, of the last 30 s
 */
export function nextLookMs(thresholds: readonly Threshold[], looks: readonly PastLook[]): number {
  return nearThresholds(thresholds, looks).length > 0 ? nearPeriodMs : usualPeriodMs;
}

/** Thresholds that are met, or soon may be. Pure. */
export function nearThresholds(thresholds: readonly Threshold[], looks: readonly PastLook[]): Threshold[] {
  return thresholds.filter((threshold) => isNear(threshold, looks));
}

function isNear({ signal, value }: Threshold, looks: readonly PastLook[]): boolean {
  const seen = looks.flatMap(({ atMs, observations }) => {
    const observation = observations.get(signal);
    return observation === undefined ? [] : [{ atMs, ...observation }];
  });
  const [oldest, newest] = [seen[0], seen.at(-1)];
  if (oldest === undefined || newest === undefined) return false;
  const above = Number(newest.available - thresholdAmount(value, newest.capacity));
  if (above < Number(newest.capacity) * nearPart) return true;
  const passedMs = newest.atMs - oldest.atMs;
  const used = Number(oldest.available - newest.available);
  return passedMs > 0 && used > 0 && above / (used / passedMs) <= nearMs;
}
