import type { Clock } from "../ports/clock.ts";

/** A client that has just started the engine gets this long to bring its pods. */
const firstWaitMs = 30_000;
/** Between two pods there may be a moment without any (`stop` and `run` again): that is no reason to end. */
const waitMs = 2_000;

/** Tells when an engine has had nothing to do for a while. */
export class IdleExit {
  readonly #clock: Clock;
  readonly #isIdle: () => boolean;
  readonly #onIdle: () => void;
  #timer: Disposable | undefined;

  constructor(clock: Clock, isIdle: () => boolean, onIdle: () => void) {
    this.#clock = clock;
    this.#isIdle = isIdle;
    this.#onIdle = onIdle;
  }

  /** The engine has started. */
  started(): void {
    this.#wait(firstWaitMs);
  }

  /** A pod is gone: perhaps it was the last. */
  podGone(): void {
    if (this.#isIdle()) this.#wait(waitMs);
  }

  #wait(delayMs: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#clock.timer("pods for an idle engine", delayMs, () => {
      if (this.#isIdle()) this.#onIdle();
    });
  }
}
