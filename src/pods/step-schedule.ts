import { onAbort } from "../base/abort.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import type { WorkerConfig } from "./worker-dependencies.ts";

/** Causes that are kept until the next step; more say nothing new. */
const manyCauses = 8;

/**
 * How long a pod at rest is left alone: syncFrequency, and up to half as much again so that pods spread.
 * @param draw uniform in [0, 1)
 */
export function resyncDelayMs({ syncFrequencyMs }: Pick<WorkerConfig, "syncFrequencyMs">, draw: number): number {
  return syncFrequencyMs * (1 + draw / 2);
}

/** How long after a failure another try is made, spread alike; never longer than a pod at rest waits. */
export function retryDelayMs(
  { errorBackOffMs, syncFrequencyMs }: Pick<WorkerConfig, "errorBackOffMs" | "syncFrequencyMs">,
  draw: number,
): number {
  return Math.min(errorBackOffMs, syncFrequencyMs) * (1 + draw / 2);
}

/**
 * When a pod worker takes its next step, and why. A wake-up means "now"; a step that ends says by when the next has to
 * come at the latest. Whatever wakes the worker during a step is not lost: the next step follows at once.
 */
export class StepSchedule {
  readonly #clock: Clock;
  readonly #name: string;
  #causes: Cause[] = [];
  #last: Cause;
  /** Monotonic ms of the next step; undefined while nothing is known yet. */
  #nextMs: number | undefined = 0;
  #timerCause: Cause | undefined;
  #wake: (() => void) | undefined;

  /** @param name what the wait is called in diagnostics */
  constructor(clock: Clock, name: string, first: Cause) {
    this.#clock = clock;
    this.#name = name;
    this.#causes.push(first);
    this.#last = first;
  }

  /** The cause of the step that is under way, or of the last one. */
  get lastCause(): Cause {
    return this.#last;
  }

  /** A step is due. */
  wake(cause: Cause): void {
    if (this.#causes.length < manyCauses) this.#causes.push(cause);
    this.#nextMs = 0;
    this.#wake?.();
  }

  /** The next step at the latest; an earlier one, or a wake-up that came during the step, stands. */
  by(atMs: number, cause: Cause): void {
    if (this.#nextMs !== undefined && this.#nextMs <= atMs) return;
    this.#nextMs = atMs;
    this.#timerCause = cause;
  }

  /** The next step at the latest when a wait of the decision is over. */
  byWaits({ waits, sandboxWaitUntilMs }: Pick<PodActions, "waits" | "sandboxWaitUntilMs">): void {
    for (const { container, exited, untilMs, cause } of waits) {
      const over: Cause =
        exited === undefined
          ? { code: "RetryDue", message: `retry is due for the start of container ${container.name}` }
          : {
              code: "BackOffExpired",
              message: `the back-off of container ${container.name} has expired`,
              because: cause,
            };
      this.by(untilMs, over);
    }
    if (sandboxWaitUntilMs === undefined) return;
    this.by(sandboxWaitUntilMs, { code: "RetryDue", message: "retry is due for the creation of the sandbox" });
  }

  /** A step begins: from here on wake-ups ask for another. */
  begin(): void {
    this.#nextMs = undefined;
  }

  /** Why the step is taken: the newest thing that woke the worker, or what the timer was for. */
  takeCause(otherwise: Cause): Cause {
    this.#last = this.#causes.at(-1) ?? this.#timerCause ?? otherwise;
    this.#causes = [];
    this.#timerCause = undefined;
    return this.#last;
  }

  /** Waits until the next step is due or the signal aborts. @param defaultMs when nothing asked for one */
  async pause(defaultMs: number, signal: AbortSignal): Promise<void> {
    const delayMs = (this.#nextMs ?? defaultMs) - this.#clock.monotonic();
    if (delayMs <= 0 || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    using _timer = this.#clock.timer(this.#name, delayMs, resolve);
    using _abort = onAbort(signal, resolve);
    await promise;
    this.#wake = undefined;
  }
}
