import { Emitter } from "../base/emitter.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Observation } from "./pod-cache.ts";

interface OutcomeDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
}

/** Tracks whether the runtime can be listed, and notifies of its recovery. */
export class RelistOutcome {
  readonly #deps: OutcomeDependencies;
  readonly #returns = new Emitter<Cause>();
  #error: string | undefined;
  #lastMs: number | undefined;
  /** Someone found the runtime away after this relist had begun. */
  #awaitedAfter: Observation | undefined;

  constructor(deps: OutcomeDependencies) {
    this.#deps = deps;
  }

  /** True from a failed relist to the next successful one. */
  get isFailing(): boolean {
    return this.#error !== undefined;
  }

  /** Monotonic ms of the last successful relist. */
  get lastMs(): number | undefined {
    return this.#lastMs;
  }

  /** Calls back when the runtime answers again after an outage, until disposed of. */
  onRecovered(listener: (cause: Cause) => void): Disposable {
    return this.#returns.on(listener);
  }

  /** The runtime was found away, and may be back before a relist fails: the next successful one reports its return. */
  awaitAnswer(latest: Observation): void {
    this.#awaitedAfter = latest;
  }

  failed(error: unknown): void {
    if (this.#error !== undefined) return;
    const { journal, log } = this.#deps;
    this.#error = errorMessage(error);
    journal.record({ kind: "note", what: "RelistFailed", message: `cannot list the runtime's pods: ${this.#error}` });
    log.warn("cannot list the runtime's pods", { error: this.#error });
  }

  succeeded(observed: Observation): void {
    this.#lastMs = this.#deps.clock.monotonic();
    const wasAwaited = this.#awaitedAfter !== undefined && observed > this.#awaitedAfter;
    if (this.#error === undefined && !wasAwaited) return;
    const cause: Cause = { code: "RelistRecovered", message: "container runtime answers again" };
    const entry = this.#error === undefined ? undefined : this.#tellEnd(cause.message);
    this.#error = undefined;
    if (wasAwaited) this.#awaitedAfter = undefined;
    this.#returns.emit({ ...cause, ...(entry !== undefined && { entry }) });
  }

  /** The failure was logged as a warning, so the recovery is logged too. */
  #tellEnd(message: string): number {
    const { journal, log } = this.#deps;
    log.info(message);
    return journal.record({ kind: "note", what: "RelistRecovered", message });
  }
}
