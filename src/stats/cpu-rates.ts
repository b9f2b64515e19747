/** Rates over less than this say more about the moment than about the load. */
const leastMs = 1_000;
/** What was seen longer ago says nothing about now; nothing else is kept either. */
const mostMs = 120_000;

interface Seen {
  usageNanoseconds: number;
  atMs: number;
  nanoCores: number | undefined;
  lastMs: number;
}

/**
 * How much of a processor each cgroup uses now, from its counter at two moments: there is a rate from the second look on,
 * and looks that come fast show the one before. Nothing is read for it in between.
 */
export class CpuRates {
  readonly #seen = new Map<string, Seen>();

  /**
   * @param key names the cgroup; a container's holds its id, as the counter begins anew with each
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

  /** Forgets what was not looked at for long. */
  sweep(nowMs: number): void {
    for (const [key, { lastMs }] of this.#seen) if (nowMs - lastMs > mostMs) this.#seen.delete(key);
  }
}
