import type { Emitter } from "../base/emitter.ts";
import type { Clock } from "../ports/clock.ts";
import { pauseBeforeRetry } from "../volumes/retry-pause.ts";

/** A failed attempt, and what may allow an earlier retry. */
export interface FailedTry {
  readonly error: unknown;
  /** The shortest wait, ms. */
  readonly leastMs?: number | undefined;
  /** Ends the wait early. */
  readonly until?: Promise<void> | undefined;
  /** So does each of its events. */
  readonly retries?: Emitter | undefined;
}

/**
 * Repeats an operation until it succeeds or the signal aborts, with upstream's back-off.
 * @param wait the name of the wait between attempts, for diagnostics
 * @param tried receives the result of each attempt; undefined: it succeeded
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
    await pauseBeforeRetry(clock, wait, { ...failed, failures }, signal);
  }
}
