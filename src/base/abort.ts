import { settlesBefore } from "./settling.ts";
import { TransientList } from "./transient-list.ts";
import type { Clock } from "../ports/clock.ts";

/** What listens to each signal, in the order in which it began to. */
const listeners = new WeakMap<AbortSignal, TransientList<() => void>>();

const notListening: Disposable = { [Symbol.dispose]: () => {} };

/**
 * Calls `callback` when the signal aborts (at once when it has); dispose of the result to stop listening. Both take the same
 * time however many listen: those of a signal are a list that is gone through for each, and thousands of pods wait on one.
 */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): Disposable {
  if (signal?.aborted) callback();
  if (signal === undefined || signal.aborted) return notListening;
  return (listeners.get(signal) ?? listenTo(signal)).add(callback);
}

function listenTo(signal: AbortSignal): TransientList<() => void> {
  const all = new TransientList<() => void>();
  listeners.set(signal, all);
  const abort = (): void => {
    listeners.delete(signal);
    for (const callback of all) callback();
    // Otherwise a holder of the signal would keep them in memory.
    all.clear();
  };
  signal.addEventListener("abort", abort, { once: true });
  return all;
}

/** Resolves with the promise, or as soon as the signal aborts: for waits that are over then, whatever came of them. */
export async function orAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (await settlesBefore(promise, (over) => onAbort(signal, over))) await promise;
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
