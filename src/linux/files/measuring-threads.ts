import { Semaphore } from "../../base/semaphore.ts";
import type { Clock } from "../../ports/clock.ts";
import { systemClock } from "../processes/clock.ts";
import { Lane, type CalledMount } from "./lane.ts";

/** The calls of each kind for one file system. */
interface Lanes {
  readonly walks: Lane;
  readonly asks: Lane;
}

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
  async walk<T>(mount: CalledMount, call: () => Promise<T>): Promise<T> {
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
  async ask<T>(mount: CalledMount, call: () => Promise<T>): Promise<T> {
    return await this.#lanesOf(mount).asks.run(async (begin) => {
      using _thread = await this.#all.acquire();
      begin();
      return await call();
    });
  }

  #lanesOf(mount: CalledMount): Lanes {
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
