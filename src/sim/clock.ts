import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";

interface SimTimer {
  readonly atMs: number;
  readonly name: string;
  readonly callback: () => void;
}

/** The clock of one incarnation of the node. */
export interface IncarnationClock extends Clock {
  /** Nothing that was scheduled with it fires any more. */
  kill(): void;
  /** Names of the timers that are waited for. */
  pending(): string[];
}

/** More steps than these within so many milliseconds are a loop that waits for nothing. */
const manySteps = 50_000;
const standstillMs = 1;

/**
 * Virtual time. Nothing happens by itself: `run` fires what is due, one timer after the other in the order of their
 * times, lets everything that follows from one settle, and jumps to the next. Same timers, same order, on any machine.
 */
export class SimClock {
  #nowMs = 0;
  #wallOffsetMs: number;
  readonly #timers: SimTimer[] = [];

  constructor(startWallMs: number) {
    this.#wallOffsetMs = startWallMs;
  }

  /** Simulated milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** The wall clock jumps; nothing else does. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  schedule(name: string, delayMs: number, callback: () => void): Disposable {
    const timer: SimTimer = { atMs: this.#nowMs + Math.max(0, delayMs), name, callback };
    this.#insert(timer);
    return {
      [Symbol.dispose]: () => {
        const index = this.#timers.indexOf(timer, this.#firstAt(timer.atMs));
        if (index >= 0) this.#timers.splice(index, 1);
      },
    };
  }

  /** Names of the timers that are waited for, soonest first. */
  pending(): string[] {
    return this.#timers.map((timer) => timer.name);
  }

  /** Runs until `untilMs` or until `done` says so; true when it did. Checks `done` after every step. */
  async run(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    await settle();
    let [stepsAtOnce, sinceMs] = [0, this.#nowMs];
    while (!done()) {
      const timer = this.#timers[0];
      if (timer === undefined || timer.atMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return done();
      }
      this.#timers.shift();
      this.#nowMs = timer.atMs;
      if (timer.atMs > sinceMs + standstillMs) [stepsAtOnce, sinceMs] = [0, timer.atMs];
      if (++stepsAtOnce > manySteps) throw new Error(`time stands still at ${timer.atMs} ms: ${timer.name}`);
      timer.callback();
      await settle();
    }
    return true;
  }

  /** The clock of one incarnation of the node: after `kill` its timers never fire. */
  incarnation(): IncarnationClock {
    const owned = new Map<Disposable, string>();
    let alive = true;
    const timer = (name: string, delayMs: number, callback: () => void): Disposable => {
      if (!alive) return { [Symbol.dispose]: () => {} };
      const scheduled = this.schedule(name, delayMs, () => {
        owned.delete(handle);
        callback();
      });
      const handle: Disposable = {
        [Symbol.dispose]: () => {
          owned.delete(handle);
          scheduled[Symbol.dispose]();
        },
      };
      owned.set(handle, name);
      return handle;
    };
    return {
      now: () => this.wallMs,
      monotonic: () => this.#nowMs,
      timer,
      sleep: async (name, delayMs, signal) => {
        signal?.throwIfAborted();
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        using _timer = timer(name, delayMs, resolve);
        using _abort = onAbort(signal, () => reject(signal?.reason));
        await promise;
      },
      kill: () => {
        alive = false;
        for (const handle of [...owned.keys()]) handle[Symbol.dispose]();
      },
      pending: () => [...owned.values()],
    };
  }

  /** Keeps the list sorted by time, then by order of scheduling. */
  #insert(timer: SimTimer): void {
    let low = this.#firstAt(timer.atMs);
    while (this.#timers[low]?.atMs === timer.atMs) low++;
    this.#timers.splice(low, 0, timer);
  }

  /** Where the timers of that time begin. */
  #firstAt(atMs: number): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#timers[middle]?.atMs ?? atMs) < atMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Lets every promise that can settle without time passing do so: one turn of the event loop drains all microtasks, and
 * tells of rejections that nobody handles, as it would in production.
 */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    // oxlint-disable-next-line no-restricted-globals -- the one place that turns the real event loop for the virtual one
    setImmediate(resolve);
  });
}
