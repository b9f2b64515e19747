import type { Semaphore } from "./semaphore.ts";

/** One place of a semaphore for all holders of a group: the first acquires it, the last gives it back. */
export class SharedTurn {
  readonly #semaphore: Semaphore;
  #holders = 0;
  #place: Promise<Disposable> | undefined;

  constructor(semaphore: Semaphore) {
    this.#semaphore = semaphore;
  }

  /** @param signal the group's: for all holders the same */
  async acquire(signal: AbortSignal): Promise<Disposable> {
    this.#holders++;
    this.#place ??= this.#semaphore.acquire(signal);
    const place = this.#place;
    try {
      await place;
    } catch (error) {
      this.#holders--;
      if (this.#place === place) this.#place = undefined;
      throw error;
    }
    return this.#share(await place);
  }

  #share(place: Disposable): Disposable {
    let isGiven = false;
    return {
      [Symbol.dispose]: () => {
        if (isGiven) return;
        isGiven = true;
        if (--this.#holders > 0) return;
        this.#place = undefined;
        place[Symbol.dispose]();
      },
    };
  }
}
