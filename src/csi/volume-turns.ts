import { TransientMap } from "../base/transient-map.ts";
import { Turns } from "../base/turns.ts";
import type { Clock } from "../ports/clock.ts";
import { uniqueVolumeName } from "./names.ts";

/** A volume's call in progress, and the calls that wait for its end. */
interface Line {
  method: string;
  sinceMonotonicMs: number;
  /** Both together. */
  calls: number;
}

/**
 * One call at a time for each volume of a driver, whichever pods need it: the specification has the kubelet not make two
 * at once, and drivers reject the second with `Aborted`, or are not prepared for it. Taken around the driver's call
 * alone, after all other turns, so that nothing that holds it waits for another one.
 */
export class VolumeTurns {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #turns = new Turns();
  readonly #lines = new TransientMap<string, Line>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Waits for the end of the volume's calls before it. Rejects with the signal's reason when it aborts first. */
  async take(driver: string, handle: string, method: string, signal: AbortSignal): Promise<Disposable> {
    const name = uniqueVolumeName(driver, handle);
    const line = this.#lines.get(name) ?? { method, sinceMonotonicMs: this.#clock.monotonic(), calls: 0 };
    this.#lines.set(name, line);
    line.calls++;
    try {
      const turn = await this.#turns.take(name, signal);
      line.method = method;
      line.sinceMonotonicMs = this.#clock.monotonic();
      return {
        [Symbol.dispose]: () => {
          turn[Symbol.dispose]();
          this.#left(name, line);
        },
      };
    } catch (error) {
      this.#left(name, line);
      throw error;
    }
  }

  /** What the volume's calls wait for, as a clause; undefined: none waits. */
  wait(driver: string, handle: string): string | undefined {
    const line = this.#lines.get(uniqueVolumeName(driver, handle));
    if (line === undefined || line.calls < 2) return undefined;
    const seconds = Math.round((this.#clock.monotonic() - line.sinceMonotonicMs) / 1000);
    const others = line.calls === 2 ? "another call for it waits" : `${line.calls - 1} other calls for it wait`;
    return `its ${line.method} has been in progress for ${seconds} s, and ${others} for the end of that`;
  }

  #left(name: string, line: Line): void {
    if (--line.calls === 0) this.#lines.delete(name);
  }
}
