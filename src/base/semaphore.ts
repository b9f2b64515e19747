/** At most `limit` holders at a time; waiters are served in the order in which they came. */
export class Semaphore {
  readonly #limit: number;
  #held = 0;
  readonly #waiting: Array<{ grant: () => void }> = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Holders and waiters at this moment, for diagnostics. */
  get load(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held, waiting: this.#waiting.length };
  }

  /** Waits for a place; dispose of the result to give it back. Rejects with the signal's reason when it aborts first. */
  async acquire(signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#held < this.#limit) {
      this.#held++;
      return this.#place();
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { grant: resolve };
    this.#waiting.push(waiter);
    const onAbort = (): void => {
      const index = this.#waiting.indexOf(waiter);
      if (index >= 0) {
        this.#waiting.splice(index, 1);
        reject(signal?.reason);
      }
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
    return this.#place();
  }

  #place(): Disposable {
    let given = false;
    return {
      [Symbol.dispose]: () => {
        if (given) return;
        given = true;
        const next = this.#waiting.shift();
        if (next === undefined) this.#held--;
        else next.grant();
      },
    };
  }
}
