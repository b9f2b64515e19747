import type { Pod } from "../api/pod.ts";
import { thresholdAmount } from "../resources/threshold-value.ts";
import type { Observations } from "./pressure.ts";
import type { Ranked } from "./rank.ts";
import type { Threshold } from "./thresholds.ts";

/**
 * The pods that would have to go, one after the other, until enough is available: the first one, and further ones by what
 * is known of their usage. Pure.
 * @param ranked in eviction order
 */
export function podsToEvict(
  ranked: readonly Ranked[],
  { signal, value, minReclaim }: Threshold,
  observations: Observations,
): Pod[] {
  const { available = 0n, capacity = 0n } = observations.get(signal) ?? {};
  const reclaim = minReclaim === undefined ? 0n : thresholdAmount(minReclaim, capacity);
  let missing = thresholdAmount(value, capacity) + reclaim - available;
  const pods: Pod[] = [];
  for (const { pod, amount = 0 } of ranked.filter(({ isCritical }) => !isCritical)) {
    pods.push(pod);
    missing -= BigInt(Math.trunc(amount));
    if (missing <= 0n) break;
  }
  return pods;
}
