import { resourceOf, signals, type Threshold } from "./thresholds.ts";

/**
 * Thresholds in the order in which they are acted upon. Memory goes first, as upstream: who runs out of it is killed by the
 * kernel. Upstream leaves the order of the rest to chance; here hard thresholds go before soft ones, then signals in the order
 * of {@link signals}. Pure.
 */
export function byUrgency(thresholds: readonly Threshold[]): Threshold[] {
  const rank = ({ signal, graceMs }: Threshold): number =>
    (resourceOf(signal) === "memory" ? 0 : 1000) + (graceMs === 0 ? 0 : 100) + signals.indexOf(signal);
  return thresholds.toSorted((a, b) => rank(a) - rank(b));
}
