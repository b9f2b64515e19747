import { Semaphore } from "../base/semaphore.ts";

/** One at a time for each volume. */
export class VolumeTurns {
  readonly #turns = new Map<string, Semaphore>();

  /** Waits for the volume's turn, which ends with disposal. */
  async take(name: string, signal?: AbortSignal): Promise<Disposable> {
    const turn = this.#turns.get(name) ?? new Semaphore(1);
    this.#turns.set(name, turn);
    const place = await turn.acquire(signal);
    return {
      [Symbol.dispose]: () => {
        place[Symbol.dispose]();
        const { held, waiting } = turn.load;
        if (held + waiting === 0) this.#turns.delete(name);
      },
    };
  }
}
