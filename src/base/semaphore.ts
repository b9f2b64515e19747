import { invariant } from "./invariant.ts";
import { type Turn, WaitingLine } from "./waiting-line.ts";

/** At most `limit` holders at a time. */
export class Semaphore {
  readonly #limit: number;
  #held = 0;
  readonly #waiting = new WaitingLine();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Present holders and waiters, for diagnostics. */
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
    using waiter = this.#waiting.join(signal, turn);
    await waiter.granted;
  }

  #place(): Disposable {
    let given = false;
    return {
      [Symbol.dispose]: () => {
        if (given) return;
        given = true;
        if (!this.#waiting.grantNext()) this.#held--;
        // A place is released once.
        const isRight = this.#held >= 0 && this.#held <= this.#limit;
        invariant("used places stay between 0 and the limit", isRight, () => `${this.#held} of ${this.#limit}`);
      },
    };
  }
}
