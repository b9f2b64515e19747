import type { Turn } from "../../base/waiting-line.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Place, Places } from "../../base/places.ts";

/** How long a place is kept over work that seldom takes long: that an image is there is known in less. */
const patienceMs = 50;

/**
 * One operation's place among the starts of the node. It is kept from the sandbox to the last container, so that a pod
 * that has begun ends before the next begins: all are ready as early as if all had begun at once, half of them much
 * sooner. Pulls and hooks take as long as they like: the place is given back meanwhile.
 */
export class StartPlace implements Disposable {
  readonly #starts: Places;
  readonly #clock: Clock;
  #held: Place | undefined;

  constructor(starts: Places, clock: Clock) {
    this.#starts = starts;
    this.#clock = clock;
  }

  /**
   * Waits for a place unless there is one, which is kept for the next part of the start then.
   * @returns for how many milliseconds
   * @throws the signal's reason
   */
  async take(turn: Turn, signal: AbortSignal): Promise<number> {
    if (this.#held !== undefined) {
      this.#held.renew();
      return 0;
    }
    const asked = this.#clock.monotonic();
    this.#held = await this.#starts.take(turn, signal);
    return this.#clock.monotonic() - asked;
  }

  /** Gives the place back should the work last. */
  async during<T>(name: string, work: Promise<T>): Promise<T> {
    if (this.#held === undefined) return await work;
    using _patience = this.#clock.timer(name, patienceMs, () => this.give());
    return await work;
  }

  give(): void {
    this.#held?.[Symbol.dispose]();
    this.#held = undefined;
  }

  [Symbol.dispose](): void {
    this.give();
  }
}
