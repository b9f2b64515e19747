import type { Clock } from "../ports/clock.ts";

/** As in client-go: rotated tokens and certificates are noticed within a minute. */
const rereadMs = 60_000;
/** What is being replaced is whole again soon, and a node's lease has no minute. */
const soonMs = 1000;

/**
 * Contents of files that are replaced occasionally, and not always atomically: while they are invalid (empty, half
 * written, a certificate without its key) the last valid ones count.
 */
export class Reread<T> {
  readonly #clock: Clock;
  readonly #read: () => Promise<T>;
  #good: { readonly value: T } | undefined;
  #againMs = 0;
  #reading: Promise<T> | undefined;

  /** @param read throws while what it reads is no good */
  constructor(clock: Clock, read: () => Promise<T>) {
    this.#clock = clock;
    this.#read = read;
  }

  /** @throws what reading throws, as long as nothing was ever good */
  async get(): Promise<T> {
    if (this.#good !== undefined && this.#clock.monotonic() < this.#againMs) return this.#good.value;
    // Concurrent requests get the same.
    return await (this.#reading ??= this.#renew().finally(() => (this.#reading = undefined)));
  }

  /** It may be good no longer: read again at the next request. */
  expire(): void {
    this.#againMs = 0;
  }

  /** A failure that may be due to it: reread within a second, so that many failures cost one read. */
  doubt(): void {
    this.#againMs = Math.min(this.#againMs, this.#clock.monotonic() + soonMs);
  }

  async #renew(): Promise<T> {
    try {
      const value = await this.#read();
      this.#good = { value };
      this.#againMs = this.#clock.monotonic() + rereadMs;
      return value;
    } catch (error) {
      if (this.#good === undefined) throw error;
      this.#againMs = this.#clock.monotonic() + soonMs;
      return this.#good.value;
    }
  }
}
