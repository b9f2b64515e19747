import { invariant } from "./invariant.ts";
import { Semaphore } from "./semaphore.ts";
import type { Turn } from "./waiting-line.ts";
import type { Clock } from "../ports/clock.ts";
import type { PressureStall } from "../ports/pressure-stall.ts";

export interface Place extends Disposable {
  /** One part of the work is done, another begins. */
  renew(): void;
}

export interface PlacesDependencies {
  readonly clock: Clock;
  /** Undefined: what takes long counts as hanging, busy machine or not. */
  readonly stalls?: PressureStall;
}

/** The abort reason when waiting is over; a new one for each would cost more than the wait. */
const over = new Error("the work goes on, or is done");

/** How often the patience restarts while the machine is busy: others may keep it busy while the work hangs. */
const maxRenewals = 4;

/**
 * Limits concurrent work of one kind: CPU-bound work ends no earlier all at once, and half of it earlier in turn. Work
 * that hangs, or waits for a network plugin, uses no CPU: after the patience its slot is released, and if enough work
 * hangs to fill every slot, all others get a tenth of the patience until some ends. So nothing waits long for work that
 * waits itself. Work that is slow because the machine is busy, and was stalled half of the time, keeps its slot for
 * several patiences: slow machines work in turn, too.
 */
export class Places {
  readonly #clock: Clock;
  readonly #stalls: PressureStall | undefined;
  readonly #kind: string;
  readonly #limit: number;
  readonly #patienceMs: number;
  readonly #semaphore: Semaphore;
  /** Running work that has lost its slot. */
  #overdue = 0;

  /** @param kind names the work, for timers */
  constructor(
    { clock, stalls }: PlacesDependencies,
    { kind, limit, patienceMs }: { readonly kind: string; readonly limit: number; readonly patienceMs: number },
  ) {
    this.#clock = clock;
    this.#stalls = stalls;
    this.#kind = kind;
    this.#limit = limit;
    this.#patienceMs = patienceMs;
    this.#semaphore = new Semaphore(limit);
  }

  /** Slots in use, waiters, and overdue works. */
  get load(): { readonly held: number; readonly waiting: number; readonly overdue: number } {
    return { ...this.#semaphore.load, overdue: this.#overdue };
  }

  /**
   * Waits for a place; dispose of it when the work has ended.
   * @throws the signal's reason when it aborts first
   */
  async take(turn: Turn, signal: AbortSignal): Promise<Place> {
    const place = await this.#semaphore.acquire(signal, turn);
    let isOverdue = false;
    const giveUp = (): void => {
      isOverdue = true;
      this.#overdue++;
      place[Symbol.dispose]();
    };
    let patience = this.#patience(giveUp);
    return {
      renew: () => {
        if (isOverdue) return;
        patience.abort(over);
        patience = this.#patience(giveUp);
      },
      [Symbol.dispose]: () => {
        patience.abort(over);
        place[Symbol.dispose]();
        if (isOverdue) this.#overdue--;
        // Each overdue work was counted once, when it lost its place.
        invariant(
          "the number of overdue works is never negative",
          this.#overdue >= 0,
          () => `${this.#kind}: ${this.#overdue}`,
        );
        isOverdue = false;
      },
    };
  }

  /** Calls back when patience is over, unless that is aborted before. */
  #patience(giveUp: () => void): AbortController {
    const controller = new AbortController();
    const { signal } = controller;
    void this.#runOut(signal).then(
      () => !signal.aborted && giveUp(),
      () => {},
    );
    return controller;
  }

  async #runOut(signal: AbortSignal): Promise<void> {
    const short = this.#patienceMs / 10;
    await this.#clock.sleep(this.#kind, short, signal);
    for (let renewals = maxRenewals; this.#overdue < this.#limit; renewals--) {
      const [began, before] = [this.#clock.monotonic(), await this.#stalls?.stalledMs()];
      await this.#clock.sleep(this.#kind, this.#patienceMs - short, signal);
      const after = renewals === 0 ? undefined : await this.#stalls?.stalledMs();
      const spent = this.#clock.monotonic() - began;
      const isBusy = before !== undefined && after !== undefined && after - before >= spent / 2;
      if (!isBusy) return;
    }
  }
}
