import { thresholdAmount } from "../resources/threshold-value.ts";
import type { Observations } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

/** An observation; monotonic ms. */
export interface PastLook {
  readonly atMs: number;
  readonly observations: Observations;
}

/** As upstream (evictionMonitoringPeriod). */
export const usualPeriodMs = 10_000;
export const nearPeriodMs = 1_000;
/** The period whose observations determine the trend. */
const trendMs = 30_000;
/** A threshold is near if the trend meets it within this time. */
const nearMs = 20_000;
/** It is also near if less than this share of the capacity is above it. */
const nearPart = 0.1;

/** The observations for the trend, with the newest added. Pure. */
export function withLook(looks: readonly PastLook[], look: PastLook): readonly PastLook[] {
  return [...looks.filter(({ atMs }) => look.atMs - atMs <= trendMs), look];
}

/**
 * When to observe the machine next: after a second if a threshold is met or near, else at upstream's interval. Pure.
 * @param looks oldest first, of the last 30 s
 */
export function nextLookMs(thresholds: readonly Threshold[], looks: readonly PastLook[]): number {
  return nearThresholds(thresholds, looks).length > 0 ? nearPeriodMs : usualPeriodMs;
}

/** Thresholds that are met or near. Pure. */
export function nearThresholds(thresholds: readonly Threshold[], looks: readonly PastLook[]): Threshold[] {
  return thresholds.filter((threshold) => isNear(threshold, looks));
}

function isNear({ signal, value }: Threshold, looks: readonly PastLook[]): boolean {
  const isSeen = ({ observations }: PastLook): boolean => observations.has(signal);
  const [first, last] = [looks.find(isSeen), looks.findLast(isSeen)];
  const [oldest, newest] = [first?.observations.get(signal), last?.observations.get(signal)];
  if (first === undefined || last === undefined || oldest === undefined || newest === undefined) return false;
  const above = Number(newest.available - thresholdAmount(value, newest.capacity));
  if (above < Number(newest.capacity) * nearPart) return true;
  const passedMs = last.atMs - first.atMs;
  const used = Number(oldest.available - newest.available);
  return passedMs > 0 && used > 0 && above / (used / passedMs) <= nearMs;
}
