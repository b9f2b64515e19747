import { invariant } from "./invariant.ts";

/** Allows a burst of `burst` and then `perSecond` per second; a rate of 0 allows everything. Starts full. */
export class TokenBucket {
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAtMs: number | undefined;

  constructor(perSecond: number, burst: number) {
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Takes a token if there is one. `nowMs` is monotonic. */
  tryTake(nowMs: number): boolean {
    if (this.availableInMs(nowMs) > 0) return false;
    this.#tokens--;
    // One is taken only where there is one.
    invariant("tokens are never negative", this.#perSecond <= 0 || this.#tokens >= 0, () => `${this.#tokens}`);
    return true;
  }

  /** How long it takes until there is a token; 0 when there is one. */
  availableInMs(nowMs: number): number {
    if (this.#perSecond <= 0) return 0;
    const elapsedMs = Math.max(0, nowMs - (this.#filledAtMs ?? nowMs));
    this.#filledAtMs = nowMs;
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs * this.#perSecond) / 1000);
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) * 1000) / this.#perSecond;
  }
}
