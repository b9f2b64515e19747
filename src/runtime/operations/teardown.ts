import type { Turn } from "../../base/waiting-line.ts";
import { DeadlineError, withDeadline } from "../../base/deadline.ts";
import type { Places } from "../../base/places.ts";
import type { Clock } from "../../ports/clock.ts";

/** After this a removal waits in turn with the stops, however many come: a pod of the same name may wait for it. */
const removalWaitMs = 5000;

/** How many pods' sandboxes may be stopped or removed at a time: under load pods are gone one after the other. */
export class Teardowns {
  readonly #clock: Clock;
  readonly #places: Places;

  constructor(clock: Clock, places: Places) {
    this.#clock = clock;
    this.#places = places;
  }

  /**
   * Does one part of taking a pod down when it has a place for that: all at once would all be done at the end, and none
   * sooner. Stops go first, as others may be waiting for the pod to be gone; what is removed then may wait a little.
   * @param work gets for how many milliseconds it waited
   * @throws the signal's reason when it aborts before there is a place
   */
  async run<T>(turn: Turn, signal: AbortSignal, work: (queuedMs: number) => Promise<T>): Promise<T> {
    const askedMs = this.#clock.monotonic();
    using _place = await (turn === "first" ? this.#places.take(turn, signal) : this.#placeInTime(signal));
    return await work(this.#clock.monotonic() - askedMs);
  }

  async #placeInTime(signal: AbortSignal): Promise<Disposable> {
    let taken: Promise<Disposable> | undefined;
    try {
      return await withDeadline(this.#clock, "a slot to remove a pod", removalWaitMs, signal, (limited) => {
        taken = this.#places.take("later", limited);
        return taken;
      });
    } catch (error) {
      // It may have come in the very moment in which nobody waited for it any more.
      taken?.then(
        (place) => place[Symbol.dispose](),
        () => {},
      );
      if (!(error instanceof DeadlineError)) throw error;
    }
    return await this.#places.take("first", signal);
  }
}
