import { orAborted } from "../base/abort.ts";
import { Emitter } from "../base/emitter.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import { metText } from "./plain-amounts.ts";
import { lookAtPressure, noPressure, type Observations, type Pressure, type PressureLook } from "./pressure.ts";
import type { Threshold } from "./thresholds.ts";

/** The node's pressure, as others see it. */
export interface NodePressure {
  /** Conditions that hold. */
  readonly pressures: readonly Pressure[];
  /** Resolves after the first observation, when waiting for it has become pointless, or when the signal aborts. */
  known(signal: AbortSignal): Promise<void>;
  /** Calls back when the conditions have changed, until disposed of. It must not throw. */
  onChange(listener: () => void): Disposable;
}

/** The node's pressure by the last observation. */
export class PressureMonitor implements NodePressure {
  readonly #deps: { readonly journal: Recorder; readonly log: Logger };
  readonly #transitionMs: number;
  readonly #first = Promise.withResolvers<void>();
  readonly #changes = new Emitter();
  #state = noPressure;
  #pressures: readonly Pressure[] = [];

  /** @param transitionMs evictionPressureTransitionPeriod */
  constructor(deps: { readonly journal: Recorder; readonly log: Logger }, transitionMs: number) {
    this.#deps = deps;
    this.#transitionMs = transitionMs;
  }

  get pressures(): readonly Pressure[] {
    return this.#pressures;
  }

  async known(signal: AbortSignal): Promise<void> {
    await orAborted(this.#first.promise, signal);
  }

  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }

  /** Ends the wait for the first observation. */
  settle(): void {
    this.#first.resolve();
  }

  /** Judges an observation, and reports conditions that begin and end. */
  judge(thresholds: readonly Threshold[], observations: Observations, nowMs: number): PressureLook {
    const look = lookAtPressure(this.#state, observations, { thresholds, transitionMs: this.#transitionMs }, nowMs);
    this.#state = look.state;
    this.#tell(look, observations);
    return look;
  }

  #tell({ pressures, met }: PressureLook, observations: Observations): void {
    const { journal, log } = this.#deps;
    const before = this.#pressures;
    this.#pressures = pressures;
    if (before.join(" ") === pressures.join(" ")) return;
    const message =
      pressures.length === 0
        ? `node pressure is over: ${before.join(", ")}`
        : `node is under pressure: ${pressures.join(", ")}`;
    const why = met.map((threshold) => metText(threshold, observations));
    const reasons = why.length === 0 ? "" : ` (${why.join("; ")})`;
    journal.record({ kind: "observation", what: "NodePressureChanged", message: `${message}${reasons}` });
    log.warn("node pressure changed", { pressures: [...pressures], reason: why });
    this.#changes.emit();
  }
}
