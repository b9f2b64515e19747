import { Emitter } from "../base/emitter.ts";
import { orAborted } from "../base/abort.ts";
import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { lookAtPressure, noPressure, type Observations, type Pressure } from "./pressure.ts";
import { thresholdAmount, thresholdText } from "../resources/threshold-value.ts";
import type { Threshold } from "./thresholds.ts";

export interface PressureMonitorDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  /** Looks at the machine; what can't be seen is missing. */
  readonly observe: (signal: AbortSignal) => Promise<Observations>;
}

export interface PressureMonitorConfig {
  readonly thresholds: readonly Threshold[];
  /** evictionPressureTransitionPeriod. */
  readonly transitionMs: number;
}

/** What a node says and does by its pressure. */
export interface NodePressure {
  /** Conditions that hold. */
  readonly pressures: readonly Pressure[];
  /** Resolves once the machine was looked at, or should not be waited for any longer, or the signal aborts. */
  known(signal: AbortSignal): Promise<void>;
  /** Calls back when the conditions have changed, until disposed of. It must not throw. */
  onChange(listener: () => void): Disposable;
}

/** As upstream (evictionMonitoringPeriod). */
const periodMs = 10_000;
const lookLimitMs = 20_000;
/** So long others wait for the first look. */
const firstLookMs = 5000;

/** Looks whether the machine runs out of memory, disk or processes. */
export class PressureMonitor implements NodePressure {
  readonly #deps: PressureMonitorDependencies;
  readonly #config: PressureMonitorConfig;
  readonly #first = Promise.withResolvers<void>();
  readonly #changes = new Emitter();
  #state = noPressure;
  #pressures: readonly Pressure[] = [];
  #failing = false;

  constructor(deps: PressureMonitorDependencies, config: PressureMonitorConfig) {
    this.#deps = deps;
    this.#config = config;
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

  /** Looks every ten seconds until the signal aborts. Never rejects. Without thresholds nothing is looked at. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    if (this.#config.thresholds.length === 0) {
      this.#first.resolve();
      return;
    }
    using _limit = clock.timer("the first check of the node's pressure", firstLookMs, () => this.#first.resolve());
    while (!signal.aborted) {
      await this.#look(signal);
      this.#first.resolve();
      await clock.sleep("the next check of the node's pressure", periodMs, signal).catch(() => {});
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { clock, log, observe } = this.#deps;
    try {
      const seen = await withDeadline(clock, "a check of the node's pressure", lookLimitMs, signal, observe);
      this.#failing = false;
      this.#judge(seen);
    } catch (error) {
      if (signal.aborted) return;
      // What held goes on to hold: nobody knows better.
      if (!this.#failing) log.warn("cannot measure the node's pressure", { error: errorMessage(error) });
      this.#failing = true;
    }
  }

  #judge(observations: Observations): void {
    const { clock, journal, log } = this.#deps;
    const { state, pressures, missed } = lookAtPressure(this.#state, observations, this.#config, clock.monotonic());
    this.#state = state;
    const before = this.#pressures;
    this.#pressures = pressures;
    if (before.join() === pressures.join()) return;
    const why = missed.map((threshold) => missedText(threshold, observations)).join("; ");
    const message =
      pressures.length === 0
        ? `node pressure is over: ${before.join(", ")}`
        : `node is under pressure: ${pressures.join(", ")}${why === "" ? "" : ` (${why})`}`;
    journal.record({ kind: "observation", what: "NodePressureChanged", message, data: { pressures: [...pressures] } });
    log.warn("node pressure changed", { pressures, why });
    this.#changes.emit();
  }
}

function missedText({ signal, value }: Threshold, observations: Observations): string {
  const { available, capacity } = observations.get(signal) ?? { available: 0n, capacity: 0n };
  const threshold = thresholdAmount(value, capacity);
  const of = "part" in value ? ` (${thresholdText(value)} of ${capacity})` : "";
  return `${signal} ${available} is below ${threshold}${of}`;
}
