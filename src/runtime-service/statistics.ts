/**
 * Upper bounds of the buckets of `kubelet_runtime_operations_duration_seconds`, in milliseconds: 5 ms × 2.5ⁿ, 14 of
 * them (upstream's `ExponentialBuckets(.005, 2.5, 14)`).
 */
export const callDurationBucketsMs: readonly number[] = Array.from({ length: 14 }, (_, n) => 5 * 2.5 ** n);

/** What is remembered of a method's finished calls. */
export interface MethodStatistics {
  readonly calls: number;
  readonly errors: number;
  readonly totalMs: number;
  /** Calls by bucket, each counted once; one more than {@link callDurationBucketsMs} for those above the last bound. */
  readonly buckets: readonly number[];
}

/** Counts and durations of calls by method. Its size is bounded by the number of CRI's methods. */
export class CallStatistics {
  readonly #methods = new Map<string, { calls: number; errors: number; totalMs: number; buckets: number[] }>();

  get byMethod(): ReadonlyMap<string, MethodStatistics> {
    return this.#methods;
  }

  record(method: string, durationMs: number, failed: boolean): void {
    let entry = this.#methods.get(method);
    if (entry === undefined) {
      entry = {
        calls: 0,
        errors: 0,
        totalMs: 0,
        buckets: Array.from({ length: callDurationBucketsMs.length + 1 }, () => 0),
      };
      this.#methods.set(method, entry);
    }
    const bound = callDurationBucketsMs.findIndex((upper) => durationMs <= upper);
    const bucket = bound === -1 ? callDurationBucketsMs.length : bound;
    entry.calls++;
    if (failed) entry.errors++;
    entry.totalMs += durationMs;
    entry.buckets[bucket] = (entry.buckets[bucket] ?? 0) + 1;
  }
}
