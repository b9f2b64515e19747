import { Semaphore } from "./semaphore.ts";
import { TransientMap } from "./transient-map.ts";

/** One at a time for each name. Nothing is kept of a name that nobody holds. */
export class Turns {
  readonly #turns = new TransientMap<string, Semaphore>();

  /** Waits for the name's turn, which ends with disposal. Rejects with the signal's reason when it aborts first. */
  async take(name: string, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    const turn = this.#turns.get(name) ?? new Semaphore(1);
    this.#turns.set(name, turn);
    const place = await turn.acquire(signal);
    return {
      [Symbol.dispose]: () => {
        place[Symbol.dispose]();
        const { held, waiting } = turn.load;
        if (held + waiting === 0 && this.#turns.get(name) === turn) this.#turns.delete(name);
      },
    };
  }

  /** The names that somebody holds, for diagnostics. */
  get held(): readonly string[] {
    return this.#turns.keys();
  }
}
