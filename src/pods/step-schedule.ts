import { onAbort } from "../base/abort.ts";
import { invariant } from "../base/invariant.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { isPodRestart } from "./describe-actions.ts";
import type { WorkerConfig } from "./worker-dependencies.ts";

/** Causes kept until the next step; more add nothing. */
const manyCauses = 8;

/**
 * Interval between syncs of a pod at rest: syncFrequency, times 1 to 1.5 to spread pods.
 * @param draw uniform in [0, 1)
 */
export function resyncDelayMs({ syncFrequencyMs }: Pick<WorkerConfig, "syncFrequencyMs">, draw: number): number {
  return syncFrequencyMs * (1 + draw / 2);
}

/** A node keeps thousands of pods that have ended, and what could still happen to one of them wakes its worker. */
const endedShare = 10;

/** The same of a pod that has ended and that its source still has. */
export function endedResyncDelayMs(config: Pick<WorkerConfig, "syncFrequencyMs">, draw: number): number {
  return resyncDelayMs(config, draw) * endedShare;
}

/** Delay of a retry after a failure, spread alike; never longer than the interval at rest. */
export function retryDelayMs(
  { errorBackOffMs, syncFrequencyMs }: Pick<WorkerConfig, "errorBackOffMs" | "syncFrequencyMs">,
  draw: number,
): number {
  return Math.min(errorBackOffMs, syncFrequencyMs) * (1 + draw / 2);
}

/**
 * When a pod worker takes its next step, and why. A wake-up means "now"; a step that ends sets the latest time of the
 * next. A wake-up during a step is not lost: the next step follows immediately.
 */
export class StepSchedule {
  readonly #clock: Clock;
  readonly #name: string;
  #causes: Cause[] = [];
  #last: Cause;
  /** Monotonic ms of the next step; undefined while unknown. */
  #nextMs: number | undefined = 0;
  #timerCause: Cause | undefined;
  #wake: (() => void) | undefined;

  /** @param name of the wait, for diagnostics */
  constructor(clock: Clock, name: string, first: Cause) {
    this.#clock = clock;
    this.#name = name;
    this.#causes.push(first);
    this.#last = first;
  }

  /** The cause of the current or last step. */
  get lastCause(): Cause {
    return this.#last;
  }

  /** A step is due. */
  wake(cause: Cause): void {
    if (this.#causes.length < manyCauses) this.#causes.push(cause);
    this.#nextMs = 0;
    this.#wake?.();
  }

  /** The latest time of the next step; an earlier one, or a wake-up during the step, takes precedence. */
  by(atMs: number, cause: Cause): void {
    // It would never come.
    invariant("a pod's next step has a time", !Number.isNaN(atMs), () => `${this.#name}: ${cause.message}`);
    if (this.#nextMs !== undefined && this.#nextMs <= atMs) return;
    this.#nextMs = atMs;
    this.#timerCause = cause;
  }

  /** The next step at the latest when a wait of the decision ends. */
  byWaits({ waits, sandboxWaitUntilMs }: Pick<PodActions, "waits" | "sandboxWaitUntilMs">): void {
    for (const { container, exited, untilMs, cause } of waits) {
      const what = isPodRestart(cause) ? "restart of all containers" : `start of container ${container.name}`;
      const over: Cause =
        exited === undefined
          ? { code: "RetryDue", message: `retry is due for the ${what}` }
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

  /** A step begins: wake-ups from here on request another. */
  begin(): void {
    this.#nextMs = undefined;
  }

  /** Why the step is taken: the newest wake-up, or the timer's reason. */
  takeCause(otherwise: Cause): Cause {
    this.#last = this.#causes.at(-1) ?? this.#timerCause ?? otherwise;
    this.#causes = [];
    this.#timerCause = undefined;
    return this.#last;
  }

  /** Waits until the next step is due or the signal aborts. @param defaultMs if nothing is scheduled */
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
