import { BackOff } from "../base/back-off.ts";
import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";

/** As upstream's operations on volumes: 500 ms after the first failure, each time twice as long, up to 2 min 2 s. */
const [firstRetryMs, longestRetryMs] = [500, 122_000];

/** A try that failed, and what may let the next one succeed sooner. */
export interface FailedTry {
  readonly error: unknown;
  /** Ends the wait early. */
  readonly until?: Promise<void> | undefined;
}

/**
 * Does something until it succeeds or the signal aborts, with upstream's back-off between the tries.
 * @param wait what is waited for between tries, for diagnostics
 * @param tried what became of a try; undefined: it succeeded
 */
export async function untilDone(
  clock: Clock,
  wait: string,
  signal: AbortSignal,
  tried: () => Promise<FailedTry | undefined>,
): Promise<void> {
  const backOff = new BackOff(firstRetryMs, longestRetryMs);
  for (;;) {
    signal.throwIfAborted();
    const failed = await tried();
    if (failed === undefined) return;
    signal.throwIfAborted();
    const nowMs = clock.monotonic();
    backOff.next("", nowMs, nowMs);
    const { promise, resolve } = Promise.withResolvers<void>();
    using _timer = clock.timer(wait, backOff.get(""), resolve);
    using _abort = onAbort(signal, resolve);
    void failed.until?.then(resolve);
    await promise;
  }
}
