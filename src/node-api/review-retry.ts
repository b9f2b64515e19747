import { ApiError, askedPauseMs } from "../api-client/api-error.ts";
import { DeadlineError } from "../base/deadline.ts";
import type { Clock } from "../ports/clock.ts";
import { KubeConnectionError } from "../ports/kube-api.ts";
import type { Random } from "../ports/random.ts";

/** What repeating a review takes. */
export interface RetryDependencies {
  readonly clock: Pick<Clock, "monotonic" | "sleep">;
  readonly random: Pick<Random, "uniform">;
}

/** Upstream's DefaultAuthWebhookRetryBackoff. */
const attempts = 5;
const firstPauseMs = 500;
const factor = 1.5;
const jitter = 0.2;
/** No attempt begins later: the client has waited long enough. */
const longestMs = 30_000;

/**
 * Asks the API server again when its answer is likely to pass, as upstream does: a restarting or busy server must not
 * turn clients away. Not before the pause that it requests.
 * @param signal the client's: nobody waits for further attempts
 * @throws the last attempt's error, or the signal's reason
 */
export async function retried<T>(
  { clock, random }: RetryDependencies,
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  const endMs = clock.monotonic() + longestMs;
  for (let attempt = 1, pauseMs = firstPauseMs; ; attempt++, pauseMs *= factor) {
    try {
      return await ask();
    } catch (error) {
      const waitMs = Math.max(pauseMs * (1 + jitter * random.uniform()), askedPauseMs(error));
      if (attempt === attempts || !isPassing(error) || clock.monotonic() + waitMs > endMs) throw error;
      await clock.sleep("the next attempt of a review", waitMs, signal);
    }
  }
}

/** Upstream's DefaultShouldRetry. Pure. */
function isPassing(error: unknown): boolean {
  if (error instanceof KubeConnectionError) return hasBroken(error);
  if (!(error instanceof ApiError)) return false;
  const { code } = error;
  return code === 429 || (code >= 500 && code !== 503) || askedPauseMs(error) > 0;
}

/** Whether a connection was lost, rather than not established: those errors have other codes. */
function hasBroken({ cause }: KubeConnectionError): boolean {
  if (!(cause instanceof Error) || cause instanceof DeadlineError) return false;
  return !("code" in cause) || cause.code === "ECONNRESET";
}
