import type { Clock } from "../ports/clock.ts";

const once = { once: true };

/** Calls `callback` when the signal aborts (at once when it has); dispose of the result to stop listening. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): Disposable {
  if (signal?.aborted) callback();
  signal?.addEventListener("abort", callback, once);
  return new AbortListening(signal, callback);
}

/** Resolves with the promise, or as soon as the signal aborts: for waits that are over then, whatever came of them. */
export async function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>();
  using _abort = onAbort(signal, aborted.resolve);
  await Promise.race([promise, aborted.promise]);
}

class AbortListening implements Disposable {
  readonly #signal: AbortSignal | undefined;
  readonly #callback: () => void;

  constructor(signal: AbortSignal | undefined, callback: () => void) {
    this.#signal = signal;
    this.#callback = callback;
  }

  [Symbol.dispose](): void {
    this.#signal?.removeEventListener("abort", this.#callback);
  }
}

/** A signal that aborts with either of the two; dispose of it to remove its listeners. */
export function eitherSignal(a: AbortSignal, b: AbortSignal): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const first = onAbort(a, () => controller.abort(a.reason));
  const second = onAbort(b, () => controller.abort(b.reason));
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      first[Symbol.dispose]();
      second[Symbol.dispose]();
    },
  };
}

/**
 * A signal that aborts `delayMs` after the given one: for short work whose effect would be unknown if interrupted.
 * Dispose of it when the work is over.
 */
export function delayedSignal(
  clock: Clock,
  what: string,
  signal: AbortSignal,
  delayMs: number,
): { readonly signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  let timer: Disposable | undefined;
  const listening = onAbort(signal, () => {
    timer = clock.timer(what, delayMs, () => controller.abort(signal.reason));
  });
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => {
      listening[Symbol.dispose]();
      timer?.[Symbol.dispose]();
    },
  };
}
