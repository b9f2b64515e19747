import type { Clock } from "../../src/ports/clock.ts";

/** A clock that stands still until {@link advance}; both of its readings start at the same given time. For tests. */
export class ManualClock implements Clock {
  #nowMs: number;
  #timers: Array<{ readonly name: string; readonly at: number; readonly run: () => void }> = [];

  constructor(startMs = Date.UTC(2026, 10, 20, 14, 2, 0)) {
    this.#nowMs = startMs;
  }

  /** Names of pending waits. */
  get waits(): string[] {
    return this.#timers.map((timer) => timer.name);
  }

  now(): number {
    return this.#nowMs;
  }

  monotonic(): number {
    return this.#nowMs;
  }

  timer(name: string, delayMs: number, callback: () => void): Disposable {
    const timer = { name, at: this.#nowMs + delayMs, run: callback };
    this.#timers.push(timer);
    return {
      [Symbol.dispose]: () => {
        this.#timers = this.#timers.filter((other) => other !== timer);
      },
    };
  }

  async sleep(name: string, delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    using _timer = this.timer(name, delayMs, resolve);
    const onAbort = (): void => reject(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Advances the time, running due timers in order, and their consequences. */
  async advance(byMs: number): Promise<void> {
    const end = this.#nowMs + byMs;
    await settle();
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== due);
      this.#nowMs = Math.max(this.#nowMs, due.at);
      due.run();
      await settle();
    }
    this.#nowMs = end;
    await settle();
  }
}

/** Resolves after everything that needs no time has happened. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
