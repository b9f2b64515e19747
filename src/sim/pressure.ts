import type { NodePressure } from "../eviction/pressure-monitor.ts";
import type { Pressure } from "../eviction/pressure.ts";

/** What the simulated machine runs short of, as somebody says it. */
export class SimPressure implements NodePressure {
  readonly #listeners = new Set<() => void>();
  #pressures: readonly Pressure[] = [];

  get pressures(): readonly Pressure[] {
    return this.#pressures;
  }

  set(...pressures: readonly Pressure[]): void {
    this.#pressures = pressures;
    for (const listener of this.#listeners) listener();
  }

  async known(): Promise<void> {}

  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
