import { Semaphore } from "../../base/semaphore.ts";
import { FileError } from "../../ports/files.ts";
import { systemClock } from "../processes/clock.ts";

/**
 * Calls for measurements that may hang in the kernel, as on a failing disk. A thread cannot be interrupted, and Node.js
 * has four of them for all file work, so measurements leave one of them alone, and walks of trees leave one more to the
 * sizes of file systems. What waits for a thread holds none.
 */
export class MeasuringThreads {
  readonly #all = new Semaphore(3);
  readonly #walks = new Semaphore(2);
  /** Since when each file system is being asked, monotonic ms, and the end of that. */
  readonly #asked = new Map<string, { readonly sinceMs: number; readonly ended: Promise<void> }>();

  /** One call of a walk. */
  async walk<T>(call: () => Promise<T>): Promise<T> {
    using _walk = await this.#walks.acquire();
    using _thread = await this.#all.acquire();
    return await call();
  }

  /**
   * One call for a file system, once the one before has ended.
   * @throws FileError `ETIMEDOUT` while that takes too long
   */
  async ask<T>(path: string, call: () => Promise<T>): Promise<T> {
    for (let other = this.#asked.get(path); other !== undefined; other = this.#asked.get(path)) {
      if (systemClock.monotonic() - other.sinceMs >= hangsMs) {
        throw new FileError("ETIMEDOUT", path, `ETIMEDOUT: the file system at '${path}' does not answer`);
      }
      await other.ended;
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#asked.set(path, { sinceMs: systemClock.monotonic(), ended });
    try {
      using _thread = await this.#all.acquire();
      return await call();
    } finally {
      this.#asked.delete(path);
      resolve();
    }
  }
}

/** A call that takes longer counts as one that hangs. */
const hangsMs = 10_000;
