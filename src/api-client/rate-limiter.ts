import { onAbort } from "../base/abort.ts";
import { TokenBucket } from "../base/token-bucket.ts";
import type { Clock } from "../ports/clock.ts";

interface Waiter {
  readonly grant: () => void;
  readonly turn: "first" | "later";
}

/** At most `perSecond` requests a second and `burst` at once, in the order in which they come. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #name: string;
  readonly #bucket: TokenBucket;
  readonly #waiting: Waiter[] = [];
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
  async acquire(signal: AbortSignal, turn: "first" | "later" = "later"): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { grant: resolve, turn };
    const before = turn === "first" ? this.#waiting.findIndex((other) => other.turn === "later") : -1;
    this.#waiting.splice(before < 0 ? this.#waiting.length : before, 0, waiter);
    using _abort = onAbort(signal, () => {
      const index = this.#waiting.indexOf(waiter);
      if (index >= 0) this.#waiting.splice(index, 1);
      reject(signal.reason);
    });
    this.#serve();
    await promise;
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
      this.#waiting.shift()?.grant();
    }
  }
}
