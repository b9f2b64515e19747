import { onAbort } from "./abort.ts";

/** `first` is served before `later`; within each, in the order in which they came. */
export type Turn = "first" | "later";

interface Waiter {
  readonly grant: () => void;
  readonly turn: Turn;
}

/** At most `limit` holders at a time. */
export class Semaphore {
  readonly #limit: number;
  #held = 0;
  readonly #waiting: Waiter[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Holders and waiters at this moment, for diagnostics. */
  get load(): { readonly held: number; readonly waiting: number } {
    return { held: this.#held, waiting: this.#waiting.length };
  }

  /** Waits for a place; dispose of the result to give it back. Rejects with the signal's reason when it aborts first. */
  async acquire(signal?: AbortSignal, turn: Turn = "later"): Promise<Disposable> {
    signal?.throwIfAborted();
    if (this.#held < this.#limit) this.#held++;
    else await this.#queue(signal, turn);
    return this.#place();
  }

  async #queue(signal: AbortSignal | undefined, turn: Turn): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { grant: resolve, turn };
    const before = turn === "first" ? this.#waiting.findIndex((other) => other.turn === "later") : -1;
    this.#waiting.splice(before < 0 ? this.#waiting.length : before, 0, waiter);
    using _abort = onAbort(signal, () => {
      const index = this.#waiting.indexOf(waiter);
      if (index < 0) return;
      this.#waiting.splice(index, 1);
      reject(signal?.reason);
    });
    await promise;
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
