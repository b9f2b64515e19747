import type { Clock } from "../ports/clock.ts";

/** A wait that passed its deadline: says which. */
export class DeadlineError extends Error {
  readonly wait: string;
  readonly limitMs: number;
  constructor(wait: string, limitMs: number) {
    super(`${wait}: not done within ${limitMs / 1000} s`);
    this.name = "DeadlineError";
    this.wait = wait;
    this.limitMs = limitMs;
  }
}

/**
 * Runs `work` with a signal that aborts when `signal` does or, with a {@link DeadlineError}, after `limitMs`.
 * Settles at that moment even when `work` does not listen to the signal.
 */
export async function withDeadline<T>(
  clock: Clock,
  wait: string,
  limitMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const aborted = Promise.withResolvers<never>();
  const abort = (reason: unknown): void => {
    controller.abort(reason);
    aborted.reject(reason);
  };
  const onAbort = (): void => abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  using _timer = clock.timer(wait, limitMs, () => abort(new DeadlineError(wait, limitMs)));
  try {
    return await Promise.race([work(controller.signal), aborted.promise]);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    aborted.promise.catch(() => {});
  }
}
