import type { Clock } from "../ports/clock.ts";
import { errorMessage } from "./errors.ts";
import { settlesBefore } from "./settling.ts";
import { TransientMap } from "./transient-map.ts";

interface Outstanding {
  readonly sinceMs: number;
  /** Never rejects. */
  readonly ended: Promise<void>;
}

/**
 * Sources that may hang in the kernel or behind a server. Each read has a limit of its own, so that a source that stalls
 * delays the others by no more than that. What hangs cannot be interrupted, and holds a thread: no source is read again
 * before its last read has ended, however late.
 */
export class BoundedSources {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #outstanding = new TransientMap<string, Outstanding>();

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /**
   * Reads a source. Never rejects.
   * @param failed is told why there is no result
   * @returns undefined: there is none
   */
  async read<T>(source: string, work: () => Promise<T>, failed: (why: string) => void): Promise<T | undefined> {
    for (let other = this.#outstanding.get(source); other !== undefined; other = this.#outstanding.get(source)) {
      const leftMs = this.#limitMs - (this.#clock.monotonic() - other.sinceMs);
      if (leftMs <= 0 || !(await this.#within(source, leftMs, other.ended))) {
        failed(this.#stallText(other.sinceMs));
        return undefined;
      }
    }
    const sinceMs = this.#clock.monotonic();
    let outcome: { readonly result: T } | { readonly error: unknown } | undefined;
    const ended = work().then(
      (result) => {
        outcome = { result };
        this.#outstanding.delete(source);
      },
      (error: unknown) => {
        outcome = { error };
        this.#outstanding.delete(source);
      },
    );
    this.#outstanding.set(source, { sinceMs, ended });
    await this.#within(source, this.#limitMs, ended);
    if (outcome !== undefined && "result" in outcome) return outcome.result;
    failed(outcome === undefined ? this.#stallText(sinceMs) : errorMessage(outcome.error));
    return undefined;
  }

  #stallText(sinceMs: number): string {
    return `has not answered for ${Math.round((this.#clock.monotonic() - sinceMs) / 1000)} s`;
  }

  /** @returns whether it has ended by then */
  async #within(source: string, limitMs: number, ended: Promise<void>): Promise<boolean> {
    return await settlesBefore(ended, (late) => this.#clock.timer(`${source} to answer`, limitMs, late));
  }
}
