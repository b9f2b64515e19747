import { invariant } from "./invariant.ts";

interface BackOffEntry {
  delayMs: number;
  lastUpdateMs: number;
}

/**
 * Exponential back-off by key, with the semantics of upstream's `client-go/util/flowcontrol.Backoff` (no jitter): the
 * first failure waits `initialMs`, each further one twice as long, at most `maxMs`. An entry has expired, so that the
 * next failure starts over, when the event comes more than `expiryMs` (2 × `maxMs` unless given) after the entry's last
 * update.
 *
 * Holds no clock: the caller gives every time, in milliseconds on one clock of its choice. An event may lie before the
 * moment at which it is noticed (a container's exit), so the two are given apart.
 */
export class BackOff {
  readonly #initialMs: number;
  readonly #maxMs: number;
  readonly #expiryMs: number;
  readonly #entries = new Map<string, BackOffEntry>();

  constructor(initialMs: number, maxMs: number, expiryMs = 2 * maxMs) {
    this.#initialMs = Math.min(initialMs, maxMs);
    this.#maxMs = maxMs;
    this.#expiryMs = expiryMs;
  }

  /** The present number of remembered keys, for diagnostics and bounds. */
  get size(): number {
    return this.#entries.size;
  }

  /** The present delay of the key in milliseconds; 0 when it has none. */
  get(key: string): number {
    return this.#entries.get(key)?.delayMs ?? 0;
  }

  /** Notes one more failure: doubles the key's delay, or starts it when there is none or it has expired. */
  next(key: string, eventTimeMs: number, nowMs: number): void {
    const entry = this.#live(key, eventTimeMs);
    const delayMs = entry === undefined ? this.#initialMs : Math.min(entry.delayMs * 2, this.#maxMs);
    // The clock is monotonic, and restored delays were last updated before this run.
    const lastMs = entry?.lastUpdateMs ?? nowMs;
    invariant("a back-off never moves back in time", lastMs <= nowMs, () => `${key}: from ${lastMs} to ${nowMs}`);
    this.#entries.set(key, { delayMs, lastUpdateMs: nowMs });
  }

  /** Takes up a delay from before, as {@link get} had it after a {@link next} at that time. */
  restore(key: string, delayMs: number, lastUpdateMs: number): void {
    this.#entries.set(key, { delayMs: Math.min(delayMs, this.#maxMs), lastUpdateMs });
  }

  /** When the wait that follows the event ends; undefined when the key has no delay or it has expired. */
  endsAt(key: string, eventTimeMs: number): number | undefined {
    const entry = this.#live(key, eventTimeMs);
    return entry === undefined ? undefined : eventTimeMs + entry.delayMs;
  }

  /** True while less than the key's delay has passed since its last {@link next}. */
  isInBackOffSinceUpdate(key: string, nowMs: number): boolean {
    const endMs = this.endsAtSinceUpdate(key, nowMs);
    return endMs !== undefined && nowMs < endMs;
  }

  /** When the wait that follows the key's last {@link next} ends; undefined when it has no delay or it has expired. */
  endsAtSinceUpdate(key: string, nowMs: number): number | undefined {
    const entry = this.#live(key, nowMs);
    return entry === undefined ? undefined : entry.lastUpdateMs + entry.delayMs;
  }

  /** Forgets expired keys and returns them. Call it periodically to keep the map small. */
  gc(nowMs: number): string[] {
    const expired = [...this.#entries.keys()].filter((key) => this.#live(key, nowMs) === undefined);
    for (const key of expired) this.#entries.delete(key);
    return expired;
  }

  #live(key: string, eventTimeMs: number): BackOffEntry | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || eventTimeMs - entry.lastUpdateMs > this.#expiryMs ? undefined : entry;
  }
}
