import { onAbort } from "../base/abort.ts";
import type { Clock } from "../ports/clock.ts";

/** The clock of one incarnation of the node. */
export interface IncarnationClock extends Clock {
  /** Its timers fire no more. */
  kill(): void;
  /** Names of pending timers. */
  pending(): string[];
}

/** More steps than this within a few milliseconds indicate a busy loop. */
const manySteps = 50_000;
const standstillMs = 1;

/**
 * Virtual time. `run` fires due timers one after the other, lets everything that follows from one settle, and jumps to
 * the next. The order depends only on the timers, on any machine.
 */
export class SimClock {
  #nowMs = 0;
  #wallOffsetMs: number;
  /** By time, then by the order in which they were scheduled. */
  readonly #timers: SimTimer[] = [];

  constructor(startWallMs: number) {
    this.#wallOffsetMs = startWallMs;
  }

  /** Simulated milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  get wallMs(): number {
    return this.#nowMs + this.#wallOffsetMs;
  }

  /** Changes the wall clock alone. */
  jumpWall(byMs: number): void {
    this.#wallOffsetMs += byMs;
  }

  schedule(name: string, delayMs: number, callback: () => void): Disposable {
    const timer = new SimTimer(this.#timers, this.#nowMs + Math.max(0, delayMs), name, callback);
    this.#timers.splice(firstAfter(this.#timers, timer.atMs), 0, timer);
    return timer;
  }

  /** Names of pending timers, soonest first. */
  pending(): string[] {
    return this.#timers.map((timer) => timer.name);
  }

  /** Runs until `untilMs` or until `done` says so; true when it did. Checks `done` after every step. */
  async run(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    await settle();
    let [stepsAtOnce, sinceMs] = [0, this.#nowMs];
    while (!done()) {
      const timer = this.#timers[0];
      if (timer === undefined || timer.atMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return done();
      }
      this.#timers.shift();
      this.#nowMs = timer.atMs;
      if (timer.atMs > sinceMs + standstillMs) [stepsAtOnce, sinceMs] = [0, timer.atMs];
      if (++stepsAtOnce > manySteps) throw new Error(`time stands still at ${timer.atMs} ms: ${timer.name}`);
      timer.callback();
      await settle();
    }
    return true;
  }

  /** The clock of one incarnation of the node: after `kill` its timers never fire. */
  incarnation(): IncarnationClock {
    return new OwnClock(this);
  }
}

class SimTimer implements Disposable {
  readonly atMs: number;
  readonly name: string;
  readonly callback: () => void;
  readonly #timers: SimTimer[];

  constructor(timers: SimTimer[], atMs: number, name: string, callback: () => void) {
    this.#timers = timers;
    this.atMs = atMs;
    this.name = name;
    this.callback = callback;
  }

  [Symbol.dispose](): void {
    const index = this.#timers.lastIndexOf(this, firstAfter(this.#timers, this.atMs) - 1);
    if (index >= 0) this.#timers.splice(index, 1);
  }
}

class OwnClock implements IncarnationClock {
  readonly #clock: SimClock;
  readonly #timers = new Set<OwnTimer>();
  #alive = true;

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  now(): number {
    // In whole milliseconds, as Date.now() has it.
    return Math.floor(this.#clock.wallMs);
  }

  monotonic(): number {
    return this.#clock.nowMs;
  }

  timer(name: string, delayMs: number, callback: () => void): Disposable {
    const timer = new OwnTimer(this.#timers, name);
    if (this.#alive) timer.start(this.#clock, delayMs, callback);
    return timer;
  }

  async sleep(name: string, delayMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    using _timer = this.timer(name, delayMs, resolve);
    using _abort = onAbort(signal, () => reject(signal?.reason));
    await promise;
  }

  kill(): void {
    this.#alive = false;
    for (const timer of [...this.#timers]) timer[Symbol.dispose]();
  }

  pending(): string[] {
    return Array.from(this.#timers, ({ name }) => name);
  }
}

class OwnTimer implements Disposable {
  readonly name: string;
  readonly #owned: Set<OwnTimer>;
  #scheduled: Disposable | undefined;

  constructor(owned: Set<OwnTimer>, name: string) {
    this.#owned = owned;
    this.name = name;
  }

  start(clock: SimClock, delayMs: number, callback: () => void): void {
    this.#owned.add(this);
    this.#scheduled = clock.schedule(this.name, delayMs, () => {
      this.#owned.delete(this);
      callback();
    });
  }

  [Symbol.dispose](): void {
    if (this.#owned.delete(this)) this.#scheduled?.[Symbol.dispose]();
  }
}

/** The index of the first timer after that time. */
function firstAfter(timers: readonly SimTimer[], atMs: number): number {
  let low = 0;
  let high = timers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((timers[middle]?.atMs ?? Number.POSITIVE_INFINITY) <= atMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Turns of the event loop requested at a time: they share one system call. */
const turnsAtOnce = 50;
let turnsToCome = 0;
let settling: (() => void)[] = [];

/**
 * Settles every promise that can settle without time passing: each turn of the event loop drains all microtasks, and
 * reports unhandled rejections as in production.
 */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    settling.push(resolve);
    if (turnsToCome > 0) return;
    // oxlint-disable-next-line no-restricted-globals -- the one place that turns the real event loop for the virtual one
    for (; turnsToCome < turnsAtOnce; turnsToCome++) setImmediate(turn);
  });
}

function turn(): void {
  turnsToCome--;
  const ended = settling;
  settling = [];
  for (const resolve of ended) resolve();
}
