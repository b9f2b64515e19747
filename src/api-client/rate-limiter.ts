import { TokenBucket } from "../base/token-bucket.ts";
import { type Turn, WaitingLine } from "../base/waiting-line.ts";
import type { Clock } from "../ports/clock.ts";

/** At most `perSecond` requests a second and `burst` at once, in the order in which they come. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #name: string;
  readonly #bucket: TokenBucket;
  readonly #waiting = new WaitingLine();
  #timer: Disposable | undefined;

  /** @param perSecond 0 and less: no limit */
  constructor(clock: Clock, name: string, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#name = name;
    this.#bucket = new TokenBucket(perSecond, burst);
  }

  /** How many wait, for diagnostics. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Waits for its turn; `first` comes before all that are not. Rejects with the signal's reason when it aborts first. */
  async acquire(signal: AbortSignal, turn: Turn = "later"): Promise<void> {
    signal.throwIfAborted();
    if (this.#waiting.length === 0 && this.#bucket.tryTake(this.#clock.monotonic())) return;
    using waiter = this.#waiting.join(signal, turn);
    this.#serve();
    await waiter.granted;
  }

  #serve(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    while (this.#waiting.length > 0) {
      const nowMs = this.#clock.monotonic();
      const waitMs = this.#bucket.availableInMs(nowMs);
      if (waitMs > 0) {
        this.#timer = this.#clock.timer(this.#name, Math.ceil(waitMs), () => this.#serve());
        return;
      }
      this.#bucket.tryTake(nowMs);
      this.#waiting.grantNext();
    }
  }
}
