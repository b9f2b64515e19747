import { Semaphore } from "../../base/semaphore.ts";
import type { Clock } from "../../ports/clock.ts";
import { FileError } from "../../ports/files.ts";

/** The file system that a call is for. */
export interface CalledMount {
  /** `major:minor`, the same for all its mounts. */
  readonly device: string;
  /** Where it is mounted. */
  readonly target: string;
}

/** A call that takes longer counts as one that hangs. */
export const hangsMs = 10_000;

/** Calls for one file system, one after the other. */
export class Lane {
  readonly #clock: Clock;
  readonly #mount: CalledMount;
  readonly #turn = new Semaphore(1);
  /** Since when its call has a thread, monotonic ms. */
  #sinceMs: number | undefined;
  /** Ends the wait of those behind a call that hangs. */
  #late = new AbortController();
  #watch: Disposable | undefined;

  constructor(clock: Clock, mount: CalledMount) {
    this.#clock = clock;
    this.#mount = mount;
  }

  get target(): string {
    return this.#mount.target;
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
