import { onAbort } from "../../base/abort.ts";
import { TransientList } from "../../base/transient-list.ts";
import type { Clock } from "../../ports/clock.ts";

/** A wait that has neither ended nor been canceled. */
export interface PendingWait {
  readonly name: string;
  /** Milliseconds until its end; negative when the event loop is late. */
  readonly remainingMs: number;
}

/** The real clock, which also lists pending waits. */
export interface SystemClock extends Clock {
  /** Every pending timer and sleep, the nearest first. */
  waits(): PendingWait[];
}

/** Node's longest timer: a longer delay would fire at once, so it is split. */
const longestTimerMs = 2 ** 31 - 1;

const pending = new TransientList<SystemTimer>();

/**
 * Calls back when the monotonic clock has reached `due`: never earlier (Node's timers may be up to a millisecond
 * early), and never synchronously. Most are cancelled deadlines, hundreds a second: so one small object each.
 */
class SystemTimer implements Disposable {
  readonly name: string;
  readonly due: number;
  readonly #keepsAlive: boolean;
  readonly #callback: () => void;
  readonly #listed: Disposable;
  #timeout: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

  constructor(name: string, delayMs: number, keepsAlive: boolean, callback: () => void) {
    if (Number.isNaN(delayMs)) throw new RangeError(`${name}: the delay is not a number`);
    this.name = name;
    this.due = performance.now() + delayMs;
    this.#keepsAlive = keepsAlive;
    this.#callback = callback;
    this.#listed = pending.add(this);
    if (delayMs > 0) this.#arm(delayMs);
    else this.#soon();
  }

  [Symbol.dispose](): void {
    this.#listed[Symbol.dispose]();
    if (this.#timeout !== undefined) clearTimeout(this.#timeout);
    if (this.#immediate !== undefined) clearImmediate(this.#immediate);
  }

  static #onTimeout(this: void, timer: SystemTimer): void {
    const remainingMs = timer.due - performance.now();
    if (remainingMs > 0) timer.#arm(remainingMs);
    else timer.#end();
  }

  static #onImmediate(this: void, timer: SystemTimer): void {
    timer.#end();
  }

  #arm(remainingMs: number): void {
    const delayMs = Math.min(Math.ceil(remainingMs), longestTimerMs);
    this.#timeout = setTimeout(SystemTimer.#onTimeout, delayMs, this);
    if (!this.#keepsAlive) this.#timeout.unref();
  }

  #soon(): void {
    this.#immediate = setImmediate(SystemTimer.#onImmediate, this);
    if (!this.#keepsAlive) this.#immediate.unref();
  }

  #end(): void {
    this.#listed[Symbol.dispose]();
    this.#callback();
  }
}

/**
 * Node's clock and timers.
 *
 * A pending `timer` does not keep the process alive: it guards or repeats other work (a deadline, a resync), and must
 * not delay the exit of a finished command; a daemon lives through its servers. A pending `sleep` does keep it alive,
 * because its caller has more to do; its signal ends it early.
 */
export const systemClock: SystemClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),

  timer(name, delayMs, callback) {
    return new SystemTimer(name, delayMs, false, callback);
  },

  async sleep(name, delayMs, signal) {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const timer = new SystemTimer(name, delayMs, true, () => resolve(undefined));
    using _signal = onAbort(signal, () => {
      timer[Symbol.dispose]();
      reject(signal?.reason);
    });
    await promise;
  },

  waits() {
    const now = performance.now();
    return [...pending]
      .map(({ name, due }) => ({ name, remainingMs: due - now }))
      .toSorted((a, b) => a.remainingMs - b.remainingMs);
  },
};
