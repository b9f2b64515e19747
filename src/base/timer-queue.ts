import type { Clock } from "../ports/clock.ts";
import { invariant } from "./invariant.ts";

interface Wait {
  readonly dueMs: number;
  /** Waits that are due at the same time end in the order in which they began. */
  readonly order: number;
  readonly callback: (dueMs: number) => void;
  /** Place in the heap; -1 once it has ended. */
  index: number;
}

/** So many end in one turn of the event loop; the rest follow after what came in meanwhile. */
const maxPerTurn = 64;

/**
 * Many waits on one timer of the clock: for work of which hundreds of pieces are due each second. A wait costs one small
 * object; beginning and cancelling take logarithmic time.
 */
export class TimerQueue implements Disposable {
  readonly #clock: Clock;
  readonly #name: string;
  /** A binary heap, the nearest wait first. */
  readonly #heap: Wait[] = [];
  #order = 0;
  #timer: Disposable | undefined;
  #armedForMs = Number.POSITIVE_INFINITY;

  /** @param name what is waited for, as the clock's diagnostics show it */
  constructor(clock: Clock, name: string) {
    this.#clock = clock;
    this.#name = name;
  }

  /** Waits that have not ended. */
  get size(): number {
    return this.#heap.length;
  }

  /**
   * Calls back once at `dueMs` on the monotonic scale or after it, never synchronously, with that time: what has passed
   * since is how late it is. Disposing of the result cancels it. The callback must not throw.
   */
  at(dueMs: number, callback: (dueMs: number) => void): Disposable {
    // Nothing behind it in the heap would ever end.
    invariant("a wait has a time to end", !Number.isNaN(dueMs), () => this.#name);
    const wait: Wait = { dueMs, order: this.#order++, callback, index: this.#heap.length };
    this.#heap.push(wait);
    this.#rise(wait);
    if (dueMs < this.#armedForMs) this.#arm(dueMs);
    return { [Symbol.dispose]: () => this.#remove(wait) };
  }

  /** Cancels everything. */
  [Symbol.dispose](): void {
    for (const wait of this.#heap.splice(0)) wait.index = -1;
    this.#disarm();
  }

  #arm(dueMs: number): void {
    this.#timer?.[Symbol.dispose]();
    this.#armedForMs = dueMs;
    this.#timer = this.#clock.timer(this.#name, Math.max(0, dueMs - this.#clock.monotonic()), () => this.#fire());
  }

  #disarm(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#armedForMs = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#timer = undefined;
    this.#armedForMs = Number.NEGATIVE_INFINITY;
    const nowMs = this.#clock.monotonic();
    for (let ended = 0; ended < maxPerTurn; ended++) {
      const wait = this.#heap[0];
      if (wait === undefined || wait.dueMs > nowMs) break;
      // A wait that ended is out of the heap by then; found there again, it would end twice.
      invariant("a wait ends once", wait.index === 0, () => `${this.#name}: it has place ${wait.index}`);
      this.#remove(wait);
      wait.callback(wait.dueMs);
    }
    this.#armedForMs = Number.POSITIVE_INFINITY;
    const next = this.#heap[0];
    if (next !== undefined) this.#arm(next.dueMs);
  }

  #remove(wait: Wait): void {
    const { index } = wait;
    if (index < 0) return;
    // Every swap writes both places.
    invariant("a wait's heap index is correct", this.#heap[index] === wait, () => `${this.#name}: ${index}`);
    wait.index = -1;
    const last = this.#heap.pop();
    // A timer armed for a wait that has ended fires once for nothing: cheaper than re-arming each time.
    if (this.#heap.length === 0 && this.#timer !== undefined) this.#disarm();
    if (last === undefined || last === wait) return;
    this.#heap[index] = last;
    last.index = index;
    this.#rise(last);
    this.#sink(last);
  }

  #rise(wait: Wait): void {
    while (wait.index > 0) {
      const parent = this.#heap[(wait.index - 1) >> 1];
      if (parent === undefined || !isBefore(wait, parent)) return;
      this.#swap(wait, parent);
    }
  }

  #sink(wait: Wait): void {
    for (;;) {
      const left = this.#heap[2 * wait.index + 1];
      const right = this.#heap[2 * wait.index + 2];
      const child = left !== undefined && right !== undefined && isBefore(right, left) ? right : left;
      if (child === undefined || !isBefore(child, wait)) return;
      this.#swap(wait, child);
    }
  }

  #swap(a: Wait, b: Wait): void {
    [a.index, b.index] = [b.index, a.index];
    this.#heap[a.index] = a;
    this.#heap[b.index] = b;
  }
}

function isBefore(a: Wait, b: Wait): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order);
}
