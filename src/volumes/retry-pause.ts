import { onAbort } from "../base/abort.ts";
import type { Emitter } from "../base/emitter.ts";
import { operationRetryMs } from "../base/operation-retry.ts";
import { onSettled } from "../base/settling.ts";
import type { Clock } from "../ports/clock.ts";

/** A pause between two attempts. */
export interface RetryPause {
  /** Number of failures before the last one. */
  readonly failures: number;
  /** A maximum below upstream's. */
  readonly longestMs?: number | undefined;
  /** A minimum, e.g. from a Retry-After. */
  readonly leastMs?: number | undefined;
  /** Ends the pause early. Keeps nothing of the pauses that end before it. */
  readonly until?: Promise<void> | undefined;
  /** So does each of its events. */
  readonly retries?: Emitter | undefined;
}

/**
 * Waits until the next attempt is due.
 * @param wait the name of the wait, for diagnostics
 * @throws the signal's reason
 */
export async function pauseBeforeRetry(
  clock: Clock,
  wait: string,
  { failures, longestMs, leastMs = 0, until, retries }: RetryPause,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<void>();
  const delayMs = Math.max(leastMs, operationRetryMs(failures, longestMs));
  using _timer = clock.timer(wait, delayMs, resolve);
  using _abort = onAbort(signal, resolve);
  using _retry = retries?.on(resolve);
  using _until = until && onSettled(until, resolve);
  await promise;
  signal.throwIfAborted();
}
