import { onAbort } from "./abort.ts";

/** `first` is served before `later`; within each, in the order in which they came. */
export type Turn = "first" | "later";

interface Waiter {
  readonly grant: () => void;
  readonly turn: Turn;
}

/** A queue of waiters. */
export class WaitingLine {
  readonly #waiting: Waiter[] = [];

  get length(): number {
    return this.#waiting.length;
  }

  /**
   * Adds a waiter. `granted` rejects with the signal's reason when it aborts first; dispose of it once it has settled.
   */
  join(signal: AbortSignal | undefined, turn: Turn): Disposable & { readonly granted: Promise<void> } {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { grant: resolve, turn };
    const before = turn === "first" ? this.#waiting.findIndex((other) => other.turn === "later") : -1;
    this.#waiting.splice(before < 0 ? this.#waiting.length : before, 0, waiter);
    const abort = onAbort(signal, () => {
      const index = this.#waiting.indexOf(waiter);
      if (index < 0) return;
      this.#waiting.splice(index, 1);
      reject(signal?.reason);
    });
    return { granted: promise, [Symbol.dispose]: () => abort[Symbol.dispose]() };
  }

  /** Grants the next one its turn; false: no waiters. */
  grantNext(): boolean {
    const next = this.#waiting.shift();
    next?.grant();
    return next !== undefined;
  }
}
