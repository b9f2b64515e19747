import { TokenBucket } from "../base/token-bucket.ts";
import type { NodeEvent } from "./entry-events.ts";

/** An event to be stored: new, or a repetition. */
export interface CorrelatedEvent {
  readonly message: string;
  /** 1: it is new. */
  readonly count: number;
  /** Wall clock, milliseconds. */
  readonly firstMs: number;
  /** Events of one key are one Event object. */
  readonly key: string;
}

interface Similar {
  messages: Set<string>;
  lastMs: number;
}

interface Seen {
  count: number;
  readonly firstMs: number;
}

/** As client-go (EventCorrelator): 25 events of one type about one object at once, then one in five minutes. */
const burst = 25;
const perSecond = 1 / 300;
/**
 * Number of different messages of one reason, each within `similarMs` of the previous, that stay separate; further ones
 * are combined.
 */
const maxApart = 9;
const similarMs = 600_000;
/** Maximum number of keys. */
const maxKeys = 4096;

/** Keeps one object's trouble from flooding the API server: repetitions are counted, floods are dropped. */
export class EventCorrelator {
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #similar = new Map<string, Similar>();
  readonly #seen = new Map<string, Seen>();

  /** Undefined: rate-limited for this object; the next one includes it in its count. `nowMs` is wall clock. */
  correlate(event: NodeEvent, nowMs: number): CorrelatedEvent | undefined {
    const { container = "", type, reason } = event;
    const about = event.pod ?? event.claim ?? null;
    const group = JSON.stringify([about, type, reason]);
    const similar = touch(this.#similar, group, () => ({ messages: new Set<string>(), lastMs: nowMs }));
    if (nowMs - similar.lastMs > similarMs) similar.messages = new Set();
    similar.lastMs = nowMs;
    if (similar.messages.size < maxApart) similar.messages.add(event.message);
    const isApart = similar.messages.has(event.message);
    const message = isApart ? event.message : `(combined from similar events): ${event.message}`;
    const key = isApart ? JSON.stringify([about, container, type, reason, message]) : group;
    const seen = touch(this.#seen, key, () => ({ count: 0, firstMs: nowMs }));
    seen.count++;
    const bucket = touch(this.#buckets, JSON.stringify([about, type]), () => new TokenBucket(perSecond, burst));
    return bucket.tryTake(nowMs) ? { message, count: seen.count, firstMs: seen.firstMs, key } : undefined;
  }
}

/** The value of the key, created if missing; the least recently used is evicted. */
function touch<T>(map: Map<string, T>, key: string, make: () => T): T {
  const value = map.get(key) ?? make();
  map.delete(key);
  map.set(key, value);
  if (map.size > maxKeys) {
    const [oldest] = map.keys();
    if (oldest !== undefined) map.delete(oldest);
  }
  return value;
}
