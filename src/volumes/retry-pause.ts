import { onAbort } from "../base/abort.ts";
import { operationRetry } from "../base/operation-retry.ts";
import type { Clock } from "../ports/clock.ts";

/** A pause between two tries. */
export interface RetryPause {
  /** Failed tries before the last one. */
  readonly failures: number;
  /** Shorter than upstream's longest. */
  readonly longestMs?: number | undefined;
  /** What somebody asked for. */
  readonly leastMs?: number | undefined;
  /** Ends it early. */
  readonly until?: Promise<void> | undefined;
}

/**
 * Waits until the next try is due.
 * @param wait what is waited for, for diagnostics
 * @throws the signal's reason
 */
export async function pauseBeforeRetry(
  clock: Clock,
  wait: string,
  { failures, longestMs = operationRetry.longestMs, leastMs = 0, until }: RetryPause,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const delayMs = Math.max(leastMs, Math.min(operationRetry.firstMs * 2 ** failures, longestMs));
  using _timer = clock.timer(wait, delayMs, resolve);
  using _abort = onAbort(signal, resolve);
  void until?.then(resolve);
  await promise;
  signal.throwIfAborted();
}
