import type { Turn } from "../../base/waiting-line.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Place, Places } from "../../base/places.ts";

/** How long a slot is kept during work that is usually fast, e.g. checking that an image is present. */
const patienceMs = 50;

/**
 * An operation's slot among the node's starts. It is kept from the sandbox to the last container, so that a started pod
 * completes before the next starts: all are ready as early as with all at once, half of them much sooner. Pulls and
 * hooks may be slow: the slot is released meanwhile.
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
   * Waits for a slot unless one is held, which is kept for the next part of the start.
   * @returns the wait in milliseconds
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

  /** Releases the slot if the work takes long. */
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
