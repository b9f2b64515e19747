import { Emitter } from "../base/emitter.ts";
import type { NodePressure } from "../eviction/pressure-monitor.ts";
import type { Pressure } from "../eviction/pressure.ts";

/** The simulated machine's pressure, set by the test. */
export class SimPressure implements NodePressure {
  readonly #changes = new Emitter();
  #pressures: readonly Pressure[] = [];

  get pressures(): readonly Pressure[] {
    return this.#pressures;
  }

  set(...pressures: readonly Pressure[]): void {
    this.#pressures = pressures;
    this.#changes.emit();
  }

  async known(): Promise<void> {}

  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }
}
