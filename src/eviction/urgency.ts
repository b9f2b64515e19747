import { resourceOf, signals, type Threshold } from "./thresholds.ts";

/**
 * The order in which thresholds are acted upon. Memory comes first, as upstream, because the kernel kills when it runs
 * out. Upstream's order of the rest is random; here hard thresholds precede soft ones, then signals follow the order of
 * {@link signals}. Pure.
 */
export function byUrgency(thresholds: readonly Threshold[]): Threshold[] {
  const rank = ({ signal, graceMs }: Threshold): number =>
    (resourceOf(signal) === "memory" ? 0 : 1000) + (graceMs === 0 ? 0 : 100) + signals.indexOf(signal);
  return thresholds.toSorted((a, b) => rank(a) - rank(b));
}
