import { onAbort } from "../../base/abort.ts";
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

interface Wait {
  readonly name: string;
  readonly due: number;
}

const pending = new Set<Wait>();

/**
 * Calls back when the monotonic clock has reached `due`: never earlier (Node's timers may be up to a millisecond
 * early), and never synchronously. Returns the cancellation.
 */
function schedule(name: string, delayMs: number, keepsAlive: boolean, callback: () => void): () => void {
  if (Number.isNaN(delayMs)) throw new RangeError(`${name}: the delay is not a number`);
  const wait: Wait = { name, due: performance.now() + delayMs };
  let timeout: NodeJS.Timeout | undefined;
  let immediate: NodeJS.Immediate | undefined;

  const end = (): void => {
    pending.delete(wait);
    callback();
  };
  const arm = (remainingMs: number): void => {
    timeout = setTimeout(onTimeout, Math.min(Math.ceil(remainingMs), longestTimerMs));
    if (!keepsAlive) timeout.unref();
  };
  const onTimeout = (): void => {
    const remainingMs = wait.due - performance.now();
    if (remainingMs > 0) arm(remainingMs);
    else end();
  };

  pending.add(wait);
  if (delayMs > 0) {
    arm(delayMs);
  } else {
    immediate = setImmediate(end);
    if (!keepsAlive) immediate.unref();
  }
  return () => {
    pending.delete(wait);
    clearTimeout(timeout);
    clearImmediate(immediate);
  };
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
    return { [Symbol.dispose]: schedule(name, delayMs, false, callback) };
  },

  async sleep(name, delayMs, signal) {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const cancel = schedule(name, delayMs, true, () => resolve(undefined));
    using _signal = onAbort(signal, () => {
      cancel();
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
