/** Rates over a shorter time are too noisy. */
const leastMs = 1_000;
/** Older samples are useless and dropped. */
const mostMs = 120_000;

interface Seen {
  usageNanoseconds: number;
  atMs: number;
  nanoCores: number | undefined;
  lastMs: number;
}

/**
 * CPU usage of each cgroup from its counter at two moments: available from the second sample on; samples in quick
 * succession keep the previous rate. Nothing is read in between.
 */
export class CpuRates {
  readonly #seen = new Map<string, Seen>();

  /**
   * @param key identifies the cgroup; a container's includes its ID, because each container has a new counter
   * @param nowMs monotonic
   * @returns billionths of a processor; undefined at first, and after a long pause
   */
  rate(key: string, usageNanoseconds: number, nowMs: number): number | undefined {
    const before = this.#seen.get(key);
    if (before === undefined || usageNanoseconds < before.usageNanoseconds || nowMs - before.atMs > mostMs) {
      this.#seen.set(key, { usageNanoseconds, atMs: nowMs, nanoCores: undefined, lastMs: nowMs });
      return undefined;
    }
    before.lastMs = nowMs;
    const passedMs = nowMs - before.atMs;
    if (passedMs < leastMs) return before.nanoCores;
    before.nanoCores = Math.round(((usageNanoseconds - before.usageNanoseconds) * 1000) / passedMs);
    before.usageNanoseconds = usageNanoseconds;
    before.atMs = nowMs;
    return before.nanoCores;
  }

  /** Drops old samples. */
  sweep(nowMs: number): void {
    for (const [key, { lastMs }] of this.#seen) if (nowMs - lastMs > mostMs) this.#seen.delete(key);
  }
}
