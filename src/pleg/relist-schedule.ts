import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";

/** When the runtime is listed next. */
export class RelistSchedule {
  readonly #clock: Clock;
  /** Monotonic ms at which the next listing begins at the latest. */
  #byMs = Number.POSITIVE_INFINITY;
  #sooner: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A listing begins: from here on others may be asked for. */
  begin(): void {
    this.#byMs = Number.POSITIVE_INFINITY;
  }

  /** The next listing within so long, or sooner where that was asked for. */
  within(ms: number): void {
    const byMs = this.#clock.monotonic() + ms;
    if (byMs >= this.#byMs) return;
    this.#byMs = byMs;
    this.#sooner?.();
  }

  /** Waits until the next listing is due or the signal aborts. */
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
