import { Semaphore, type Turn } from "./semaphore.ts";
import type { Clock } from "../ports/clock.ts";

export interface Place extends Disposable {
  /** One part of the work is done, another begins. */
  renew(): void;
}

/**
 * How much work of one kind is done at a time: what keeps the processors busy is over no sooner all at once, and half of
 * it sooner in turn. What hangs, or waits for a network plugin, keeps none busy: past the patience its place is for
 * another, and where so many hang that they would fill every place, all others get a tenth of the patience until some
 * end. So nobody waits long for what waits itself, and a busy machine, where some work takes long, goes on in turn.
 */
export class Places {
  readonly #clock: Pick<Clock, "timer">;
  readonly #kind: string;
  readonly #limit: number;
  readonly #patienceMs: number;
  readonly #semaphore: Semaphore;
  /** Works under way that have lost their place. */
  #overdue = 0;

  /** @param kind names the work, for timers */
  constructor(
    clock: Pick<Clock, "timer">,
    { kind, limit, patienceMs }: { readonly kind: string; readonly limit: number; readonly patienceMs: number },
  ) {
    this.#clock = clock;
    this.#kind = kind;
    this.#limit = limit;
    this.#patienceMs = patienceMs;
    this.#semaphore = new Semaphore(limit);
  }

  /** Places given, those who wait for one, and works that go on without. */
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
        patience[Symbol.dispose]();
        patience = this.#patience(giveUp);
      },
      [Symbol.dispose]: () => {
        patience[Symbol.dispose]();
        place[Symbol.dispose]();
        if (isOverdue) this.#overdue--;
        isOverdue = false;
      },
    };
  }

  #patience(giveUp: () => void): Disposable {
    const short = this.#patienceMs / 10;
    let timer = this.#clock.timer(this.#kind, short, () => {
      if (this.#overdue >= this.#limit) giveUp();
      else timer = this.#clock.timer(this.#kind, this.#patienceMs - short, giveUp);
    });
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }
}
