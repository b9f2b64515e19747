import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";

/** Schedules relists. */
export class RelistSchedule {
  readonly #clock: Clock;
  /** Monotonic ms at which the next relist begins at the latest. */
  #byMs = Number.POSITIVE_INFINITY;
  #sooner: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A relist begins: requests from here on need another. */
  begin(): void {
    this.#byMs = Number.POSITIVE_INFINITY;
  }

  /** The next relist within this time, or earlier if requested. */
  within(ms: number): void {
    const byMs = this.#clock.monotonic() + ms;
    if (byMs >= this.#byMs) return;
    this.#byMs = byMs;
    this.#sooner?.();
  }

  /** Waits until the next relist is due or the signal aborts. */
  async pause(signal: AbortSignal): Promise<void> {
    for (;;) {
      const delayMs = this.#byMs - this.#clock.monotonic();
      if (delayMs <= 0 || signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#sooner = resolve;
      using _timer = this.#clock.timer("relist", delayMs, resolve);
      using _abort = onAbort(signal, resolve);
      await promise;
      this.#sooner = undefined;
    }
  }
}
