import type { Observations } from "../../eviction/pressure.ts";
import type { Threshold } from "../../eviction/thresholds.ts";
import { thresholdAmount } from "../../resources/threshold-value.ts";

/** More than podwright takes to get an observation, or to give it up. */
const seenWithinMs = 25_000;

interface Shortage {
  /** Since when less than the threshold was left, and since when less than it and its minimum reclaim; simulated ms. */
  readonly metMs: number | undefined;
  readonly looseMs: number;
}

/** What one run of podwright was shown of the node's thresholds. */
export class Shortages {
  #known = new Map<string, Shortage>();

  clear(): void {
    this.#known.clear();
  }

  /**
   * Notes an observation.
   * @returns thresholds that are met: after they have been for their grace period, until their minimum reclaim is free
   */
  note(thresholds: readonly Threshold[], observations: Observations, nowMs: number): Threshold[] {
    const before = this.#known;
    this.#known = new Map();
    return thresholds.filter((threshold) => {
      const { signal, value, minReclaim, graceMs } = threshold;
      const observation = observations.get(signal);
      const last = before.get(keyOf(threshold));
      if (observation === undefined) {
        // A disk that does not answer is as short as it was.
        if (last !== undefined) this.#known.set(keyOf(threshold), last);
        return last?.metMs !== undefined;
      }
      const { available, capacity } = observation;
      const reclaim = minReclaim === undefined ? 0n : thresholdAmount(minReclaim, capacity);
      const limit = thresholdAmount(value, capacity);
      if (available >= limit + reclaim) return false;
      const isDue = last?.metMs !== undefined && nowMs - last.metMs >= graceMs + seenWithinMs;
      const isMet = available < limit || isDue;
      const metMs = isMet ? (last?.metMs ?? nowMs) : undefined;
      this.#known.set(keyOf(threshold), { metMs, looseMs: last?.looseMs ?? nowMs });
      return isMet;
    });
  }

  /** Since when less than the threshold with its minimum reclaim is left; undefined: there is enough. */
  sinceMs(threshold: Threshold): number | undefined {
    return this.#known.get(keyOf(threshold))?.looseMs;
  }
}

function keyOf({ signal, graceMs }: Threshold): string {
  return `${signal} ${graceMs}`;
}
