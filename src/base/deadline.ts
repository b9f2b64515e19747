import type { Clock } from "../ports/clock.ts";
import { onAbort } from "./abort.ts";

/** A wait that passed its deadline: says which. */
export class DeadlineError extends Error {
  readonly wait: string;
  readonly limitMs: number;
  constructor(wait: string, limitMs: number) {
    super(`${wait}: timed out after ${limitMs / 1000} s`);
    this.name = "DeadlineError";
    this.wait = wait;
    this.limitMs = limitMs;
  }
}

/**
 * Runs `work` with a signal that aborts when `signal` does or, with a {@link DeadlineError}, after `limitMs`. Settles
 * at that moment even if `work` ignores the signal. Work may report progress, which restarts `limitMs`: a deadline for
 * silence.
 */
export async function withDeadline<T>(
  clock: Clock,
  wait: string,
  limitMs: number,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal, goesOn: () => void) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const abort = (reason: unknown): void => {
    // First: work that rejects as soon as it is aborted must not win over the reason.
    reject(reason);
    controller.abort(reason);
  };
  using _signal = onAbort(signal, () => abort(signal?.reason));
  const begin = (): Disposable => clock.timer(wait, limitMs, () => abort(new DeadlineError(wait, limitMs)));
  let timer: Disposable | undefined = begin();
  const goesOn = (): void => {
    // Work that outlives its deadline has none any more.
    if (timer === undefined) return;
    timer[Symbol.dispose]();
    timer = begin();
  };
  try {
    work(controller.signal, goesOn).then(resolve, reject);
    return await promise;
  } finally {
    timer[Symbol.dispose]();
    timer = undefined;
  }
}
