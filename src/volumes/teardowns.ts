import type { Clock } from "../ports/clock.ts";
import { pauseBeforeRetry } from "./retry-pause.ts";

/**
 * Teardowns of a pod's volumes, at the same time. One that fails is repeated as long as another is under way: that may
 * wait for its driver for good, and nothing else would try again. Once none is, whoever asked for them tries again.
 */
export class Teardowns {
  readonly #clock: Clock;
  /** Those that have neither ended nor pause. */
  #underWay: number;
  readonly #over = Promise.withResolvers<void>();

  constructor(clock: Clock, count: number) {
    this.#clock = clock;
    this.#underWay = count;
  }

  /**
   * Runs one of them, at most `count` in all.
   * @param run isAgain: an attempt has failed
   * @param failed receives each error after which it is repeated
   * @throws the error of its last attempt, or the signal's reason
   */
  async repeat(
    volume: string,
    run: (isAgain: boolean) => Promise<void>,
    failed: (error: unknown) => void,
    signal: AbortSignal,
  ): Promise<void> {
    for (let failures = 0; ; failures++) {
      try {
        await run(failures > 0);
        this.#rests();
        return;
      } catch (error) {
        this.#rests();
        if (this.#underWay === 0 || signal.aborted) throw error;
        failed(error);
        const pause = { failures, until: this.#over.promise };
        await pauseBeforeRetry(this.#clock, `another try to remove volume ${volume}`, pause, signal);
        if (this.#underWay === 0) throw error;
        this.#underWay++;
      }
    }
  }

  #rests(): void {
    if (--this.#underWay === 0) this.#over.resolve();
  }
}
