import { TokenBucket } from "../base/token-bucket.ts";
import type { NodeEvent } from "./entry-events.ts";

/** An event as it is to be stored: a new one, or one more of what was told before. */
export interface CorrelatedEvent {
  readonly message: string;
  /** 1: it is new. */
  readonly count: number;
  /** Wall clock, milliseconds. */
  readonly firstMs: number;
  /** Those of one key are one Event. */
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

/** As client-go (EventCorrelator): 25 events of one object at once, then one in five minutes. */
const burst = 25;
const perSecond = 1 / 300;
/** More than so many different messages of one reason within so long become one. */
const maxSimilar = 10;
const similarMs = 600_000;
/** Keys that are remembered. */
const maxKeys = 4096;

/** Keeps one object's trouble from flooding the API server: what repeats is counted, what is too much is dropped. */
export class EventCorrelator {
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #similar = new Map<string, Similar>();
  readonly #seen = new Map<string, Seen>();

  /** Undefined: there were too many of this object. `nowMs` is wall clock. */
  correlate(event: NodeEvent, nowMs: number): CorrelatedEvent | undefined {
    const object = JSON.stringify([event.pod ?? null]);
    const bucket = touch(this.#buckets, object, () => new TokenBucket(perSecond, burst));
    if (!bucket.tryTake(nowMs)) return undefined;
    const group = JSON.stringify([event.pod ?? null, event.container ?? "", event.type, event.reason]);
    const similar = touch(this.#similar, group, () => ({ messages: new Set<string>(), lastMs: nowMs }));
    if (nowMs - similar.lastMs > similarMs) similar.messages = new Set();
    similar.lastMs = nowMs;
    if (similar.messages.size < maxSimilar) similar.messages.add(event.message);
    const isKnown = similar.messages.has(event.message);
    const message = isKnown ? event.message : `(combined from similar events): ${event.message}`;
    const key = isKnown ? `${group} ${event.message}` : group;
    const seen = touch(this.#seen, key, () => ({ count: 0, firstMs: nowMs }));
    seen.count++;
    return { message, count: seen.count, firstMs: seen.firstMs, key };
  }

  /** The server has it no longer: the next one is a new one. */
  forget(key: string): void {
    this.#seen.delete(key);
  }
}

/** What is under the key, made when it is missing; what was not touched for longest goes when there is too much. */
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
