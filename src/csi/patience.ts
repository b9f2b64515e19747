import type { Clock } from "../ports/clock.ts";
import { pauseBeforeRetry } from "../volumes/retry-pause.ts";

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
  for (let failures = 0; ; failures++) {
    signal.throwIfAborted();
    const failed = await tried();
    if (failed === undefined) return;
    await pauseBeforeRetry(clock, wait, { failures, until: failed.until }, signal);
  }
}
