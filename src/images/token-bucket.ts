/** Allows `burst` at once and then `perSecond` a second; a rate of 0 allows everything. Starts full. */
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
    if (this.#perSecond <= 0) return true;
    const elapsedMs = Math.max(0, nowMs - (this.#filledAtMs ?? nowMs));
    this.#filledAtMs = nowMs;
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsedMs * this.#perSecond) / 1000);
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}
