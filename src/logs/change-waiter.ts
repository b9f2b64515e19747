import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";

/** Waits for a change in a directory, or for a timeout. */
export class ChangeWaiter implements Disposable {
  readonly #files: Pick<Files, "watch">;
  readonly #clock: Clock;
  readonly #directory: string;
  #watch: Disposable | undefined;
  #changed = false;
  #wake: (() => void) | undefined;

  constructor(files: Pick<Files, "watch">, clock: Clock, directory: string) {
    this.#files = files;
    this.#clock = clock;
    this.#directory = directory;
  }

  /** @param wakeable whether a change ends the wait */
  async wait(limitMs: number, wakeable: boolean, signal: AbortSignal): Promise<void> {
    this.#startWatch();
    if (wakeable && this.#changed) {
      this.#changed = false;
      return;
    }
    const woken = new AbortController();
    if (wakeable) this.#wake = () => woken.abort();
    await this.#clock
      .sleep("next poll of a log file", limitMs, AbortSignal.any([woken.signal, signal]))
      .catch(() => {});
    this.#wake = undefined;
    this.#changed = false;
  }

  #startWatch(): void {
    if (this.#watch !== undefined) return;
    const lost = (): void => {
      this.#watch = undefined;
    };
    try {
      this.#watch = this.#files.watch(this.#directory, () => this.#onChange(), lost);
    } catch {
      // The directory does not exist yet: polling finds it, and the next wait retries.
    }
  }

  #onChange(): void {
    this.#changed = true;
    this.#wake?.();
  }

  [Symbol.dispose](): void {
    this.#watch?.[Symbol.dispose]();
  }
}
