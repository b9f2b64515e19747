import { onAbort } from "./abort.ts";
import type { Clock } from "../ports/clock.ts";

/** A wait that a wake-up can end early. A wake-up without a waiter ends the next wait immediately. */
export class WakeableWait {
  readonly #clock: Clock;
  readonly #name: string;
  #hinted = false;
  #end: (() => void) | undefined;

  constructor(clock: Clock, name: string) {
    this.#clock = clock;
    this.#name = name;
  }

  wake(): void {
    this.#hinted = true;
    this.#end?.();
  }

  /** Resolves after the time, at a hint, or when the signal aborts. */
  async for(delayMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#end = resolve;
    if (this.#hinted) resolve();
    using _timer = this.#clock.timer(this.#name, delayMs, resolve);
    using _abort = onAbort(signal, resolve);
    await promise;
    this.#end = undefined;
    this.#hinted = false;
  }
}
