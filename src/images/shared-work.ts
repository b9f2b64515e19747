import { invariant } from "../base/invariant.ts";
import { onAbort } from "../base/abort.ts";
import { TransientMap } from "../base/transient-map.ts";

interface Running<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  waiters: number;
}

/**
 * Runs concurrent requests for the same work once, by key. Each caller's signal ends only its own wait; the work's
 * signal aborts when there are no waiters left.
 */
export class SharedWork<T> {
  readonly #running = new TransientMap<string, Running<T>>();

  /** Waits for the work under `key`, starting it with `start` if necessary. Rejects as the work or the signal does. */
  async join(key: string, start: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    const work = this.#running.get(key) ?? this.#begin(key, start);
    work.waiters++;
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => {});
    using _abort = onAbort(signal, () => aborted.reject(signal.reason));
    try {
      return await Promise.race([work.promise, aborted.promise]);
    } finally {
      work.waiters--;
      // Each waiter leaves only once.
      invariant("the number of waiters is never negative", work.waiters >= 0, () => `${key}: ${work.waiters}`);
      if (work.waiters === 0) this.#leave(key, work, signal);
    }
  }

  /** The last waiter has left: later callers start again instead of joining canceled work. */
  #leave(key: string, work: Running<T>, signal: AbortSignal): void {
    if (this.#running.get(key) === work) this.#running.delete(key);
    work.controller.abort(signal.reason);
  }

  #begin(key: string, start: (signal: AbortSignal) => Promise<T>): Running<T> {
    const controller = new AbortController();
    const promise = start(controller.signal);
    const work: Running<T> = { promise, controller, waiters: 0 };
    this.#running.set(key, work);
    const end = (): void => {
      if (this.#running.get(key) === work) this.#running.delete(key);
    };
    promise.then(end, end);
    return work;
  }
}
