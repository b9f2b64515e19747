import { invariant } from "../base/invariant.ts";
import type { Clock } from "../ports/clock.ts";

interface Write {
  readonly hasFailed: boolean;
  isSlow: boolean;
}

/** Concurrent writes, none of them slow. */
const placesLimit = 16;
/** Including slow ones. */
const writesLimit = 64;
/** A write without a response by then (a hanging webhook, a server that chokes on it) releases its slot. */
const patienceMs = 2000;

/**
 * Limits concurrent status writes. Slow writes make room for others, and pods whose last write failed get at most half
 * of the slots: however many they are, healthy pods do not wait for them. Unlike with `Places` nobody queues here: the
 * most urgent is chosen whenever there is room.
 */
export class WritePlaces {
  readonly #clock: Pick<Clock, "timer">;
  readonly #onRoom: () => void;
  readonly #writes = new Set<Write>();

  /** @param onRoom a write is slow: there may be room for another */
  constructor(clock: Pick<Clock, "timer">, onRoom: () => void) {
    this.#clock = clock;
    this.#onRoom = onRoom;
  }

  /** To be disposed of when the write has ended; undefined while there is no room. */
  take(hasFailed: boolean): Disposable | undefined {
    const all = [...this.#writes];
    const failed = all.filter((other) => other.hasFailed);
    if (!isRoom(all, 1) || (hasFailed && !isRoom(failed, 1 / 2))) return undefined;
    const write: Write = { hasFailed, isSlow: false };
    this.#writes.add(write);
    // Callers check for room first.
    const { size } = this.#writes;
    invariant("statuses are written within the limits", size <= writesLimit, () => `${size} of ${writesLimit}`);
    const patience = this.#clock.timer("the response to a pod status update", patienceMs, () => {
      write.isSlow = true;
      this.#onRoom();
    });
    return {
      [Symbol.dispose]: () => {
        patience[Symbol.dispose]();
        this.#writes.delete(write);
      },
    };
  }
}

function isRoom(writes: readonly Write[], share: number): boolean {
  const held = writes.filter(({ isSlow }) => !isSlow).length;
  return held < placesLimit * share && writes.length < writesLimit * share;
}
