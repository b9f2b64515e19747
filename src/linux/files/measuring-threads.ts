import { Semaphore } from "../../base/semaphore.ts";
import type { Clock } from "../../ports/clock.ts";
import { FileError } from "../../ports/files.ts";
import { systemClock } from "../processes/clock.ts";

/** The file system that a call is for. */
export interface MeasuredMount {
  /** `major:minor`, the same for all its mounts. */
  readonly device: string;
  /** Where it is mounted. */
  readonly target: string;
}

/** The calls of each kind for one file system. */
interface Lanes {
  readonly walks: Lane;
  readonly asks: Lane;
}

/** A call that takes longer counts as one that hangs. */
const hangsMs = 10_000;
/** File systems without calls are forgotten when there are more: each volume in memory is one. */
const maxIdle = 100;

/**
 * Calls for measurements that may hang in the kernel, as on a failing disk. A thread cannot be interrupted, and Node.js
 * has four of them for all file work, so measurements leave one of them alone, and walks of trees leave one more to the
 * sizes of file systems. A file system has one call of each kind at a time, so that one that hangs leaves a thread, and
 * a walk, to the others; while a call of it hangs, others for it are refused. What waits for a thread holds none.
 */
export class MeasuringThreads {
  readonly #clock: Clock;
  readonly #all = new Semaphore(3);
  readonly #walks = new Semaphore(2);
  readonly #lanes = new Map<string, Lanes>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * One call of a walk.
   * @throws FileError `ETIMEDOUT` while a call for the file system hangs
   */
  async walk<T>(mount: MeasuredMount, call: () => Promise<T>): Promise<T> {
    return await this.#lanesOf(mount).walks.run(async (begin) => {
      using _walk = await this.#walks.acquire();
      using _thread = await this.#all.acquire();
      begin();
      return await call();
    });
  }

  /**
   * One call for a file system itself: not behind those that walk it.
   * @throws FileError `ETIMEDOUT` while a call for the file system hangs
   */
  async ask<T>(mount: MeasuredMount, call: () => Promise<T>): Promise<T> {
    return await this.#lanesOf(mount).asks.run(async (begin) => {
      using _thread = await this.#all.acquire();
      begin();
      return await call();
    });
  }

  #lanesOf(mount: MeasuredMount): Lanes {
    let lanes = this.#lanes.get(mount.device);
    if (lanes === undefined) {
      if (this.#lanes.size >= maxIdle) this.#forgetIdle();
      lanes = { walks: new Lane(this.#clock, mount), asks: new Lane(this.#clock, mount) };
      this.#lanes.set(mount.device, lanes);
    }
    lanes.walks.throwIfHanging();
    lanes.asks.throwIfHanging();
    return lanes;
  }

  #forgetIdle(): void {
    for (const [device, { walks, asks }] of this.#lanes) if (walks.isIdle && asks.isIdle) this.#lanes.delete(device);
  }
}

/** Those of this process. */
export const measuringThreads = new MeasuringThreads(systemClock);

/** Calls for one file system, one after the other. */
class Lane {
  readonly #clock: Clock;
  readonly #mount: MeasuredMount;
  readonly #turn = new Semaphore(1);
  /** Since when its call has a thread, monotonic ms. */
  #sinceMs: number | undefined;
  /** Ends the wait of those behind a call that hangs. */
  #late = new AbortController();
  #watch: Disposable | undefined;

  constructor(clock: Clock, mount: MeasuredMount) {
    this.#clock = clock;
    this.#mount = mount;
  }

  get isIdle(): boolean {
    const { held, waiting } = this.#turn.load;
    return held + waiting === 0;
  }

  /** @param work calls back when it has its thread */
  async run<T>(work: (begin: () => void) => Promise<T>): Promise<T> {
    using _turn = await this.#wait();
    try {
      return await work(() => (this.#sinceMs = this.#clock.monotonic()));
    } finally {
      this.#sinceMs = undefined;
    }
  }

  throwIfHanging(): void {
    if (this.#leftMs() > 0) return;
    const { device, target } = this.#mount;
    const seconds = Math.round((this.#clock.monotonic() - (this.#sinceMs ?? 0)) / 1000);
    const what = `the file system at '${target}' (${device}) has not answered for ${seconds} s`;
    throw new FileError("ETIMEDOUT", target, `ETIMEDOUT: ${what}`);
  }

  async #wait(): Promise<Disposable> {
    // A timer for each call would cost more than the call.
    if (!this.isIdle) this.#watchCall();
    const turn = await this.#turn.acquire(this.#late.signal);
    if (this.#turn.load.waiting === 0) this.#endWatch();
    return turn;
  }

  #watchCall(): void {
    const { target } = this.#mount;
    this.#watch ??= this.#clock.timer(`the file system at ${target} to answer`, this.#leftMs(), () => {
      this.#endWatch();
      try {
        this.throwIfHanging();
        this.#watchCall();
      } catch (error) {
        const late = this.#late;
        this.#late = new AbortController();
        late.abort(error);
      }
    });
  }

  #endWatch(): void {
    this.#watch?.[Symbol.dispose]();
    this.#watch = undefined;
  }

  /** How long its call may still take. */
  #leftMs(): number {
    return this.#sinceMs === undefined ? hangsMs : hangsMs - (this.#clock.monotonic() - this.#sinceMs);
  }
}
