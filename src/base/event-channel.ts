import { invariant } from "./invariant.ts";
import { onAbort } from "./abort.ts";

/**
 * A bounded queue with one reader. A full channel refuses (`offer` returns false) instead of growing or waiting: the
 * writer keeps what it could not deliver.
 */
export class EventChannel<T> {
  readonly #capacity: number;
  readonly #queue: T[] = [];
  #wake: (() => void) | undefined;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get length(): number {
    return this.#queue.length;
  }

  /** False when the channel is full: the event was not taken. */
  offer(event: T): boolean {
    if (this.#queue.length >= this.#capacity) return false;
    this.#queue.push(event);
    this.#wake?.();
    return true;
  }

  /** Everything queued, oldest first, waiting while there is nothing; rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<T[]> {
    signal.throwIfAborted();
    if (this.#queue.length === 0) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#wake = resolve;
      using _abort = onAbort(signal, () => reject(signal.reason));
      await promise.finally(() => (this.#wake = undefined));
    }
    const { length } = this.#queue;
    // Offers beyond the capacity are refused.
    invariant("a channel never exceeds its capacity", length <= this.#capacity, () => `${length} of ${this.#capacity}`);
    return this.#queue.splice(0);
  }
}
