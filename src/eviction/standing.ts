import { limitText, plainAmount } from "./plain-amounts.ts";
import type { Observations } from "./pressure.ts";
import { resourceOf, type Signal, type Threshold } from "./thresholds.ts";

/** How much of a signal is available, and when pods are evicted for it. Pure. */
export function standingText(signal: Signal, thresholds: readonly Threshold[], observations: Observations): string {
  const observation = observations.get(signal);
  if (observation === undefined) return `${signal} is unknown`;
  const { available, capacity } = observation;
  const resource = resourceOf(signal);
  const limits = thresholds
    .filter((threshold) => threshold.signal === signal)
    .map((threshold) => {
      const { graceMs } = threshold;
      return `${limitText(threshold, capacity)}${graceMs === 0 ? "" : ` for ${graceMs / 1000} s`}`;
    });
  const evicts = limits.length === 0 ? "no threshold is set" : `pods are evicted below ${limits.join(", or ")}`;
  return `${signal} is ${plainAmount(resource, available)} of ${plainAmount(resource, capacity)}; ${evicts}`;
}
