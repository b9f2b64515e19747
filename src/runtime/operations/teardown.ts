import type { Turn } from "../../base/waiting-line.ts";
import { DeadlineError, withDeadline } from "../../base/deadline.ts";
import type { Places } from "../../base/places.ts";
import type { Clock } from "../../ports/clock.ts";

/** After this a removal queues like the stops, however many there are: a pod of the same name may wait for it. */
const removalWaitMs = 5000;

/** Number of pods whose sandboxes are stopped or removed concurrently: under load pods are gone one after the other. */
export class Teardowns {
  readonly #clock: Clock;
  readonly #places: Places;

  constructor(clock: Clock, places: Places) {
    this.#clock = clock;
    this.#places = places;
  }

  /**
   * Runs one step of a pod's teardown when a slot is free: run all at once, all would end late. Stops go first, since
   * others may wait for the pod to be gone; removals may wait a little.
   * @param work receives the wait in milliseconds
   * @throws the signal's reason when it aborts before there is a slot
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
      // It may have arrived just when the wait was canceled.
      taken?.then(
        (place) => place[Symbol.dispose](),
        () => {},
      );
      if (!(error instanceof DeadlineError)) throw error;
    }
    return await this.#places.take("first", signal);
  }
}
