import type { Container } from "../api/container.ts";
import { errorMessage } from "../base/errors.ts";
import type { ContainerId, PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { TimerQueue } from "../base/timer-queue.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { Observer, ProbeName } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { Random } from "../ports/random.ts";
import type { HideSecrets } from "../runtime/config/hidden-secrets.ts";
import { describeProbe, probeAction } from "./probe-action.ts";
import { FailureLog } from "./failure-log.ts";
import {
  firstProbeMs,
  initialResult,
  isFinal,
  judge,
  mayProbe,
  nextProbeMs,
  noStreak,
  type ProbeResult,
  type Streak,
} from "./probe-judgement.ts";
import type { ProbeResults } from "./probe-results.ts";
import type { ProbeOutcome, ProbeRunner } from "./probe-runner.ts";
import { capitalised, type Probe, type ProbeTimes, type ProbeType, probeTimes } from "./probe-spec.ts";

export interface ProbeWorkerDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly timers: TimerQueue;
  readonly runner: ProbeRunner;
  readonly results: ProbeResults;
  readonly journal: Recorder;
  readonly log: Logger;
  /** When podwright started, monotonic ms. */
  readonly ownStartMs: number;
  /** An earlier run's result for an instance. */
  readonly remembered: (uid: PodUid, id: ContainerId, type: ProbeType) => ProbeResult | undefined;
  readonly observer?: Observer | undefined;
}

/** A running instance of the container. */
export interface ProbeTarget {
  readonly id: ContainerId;
  /** Monotonic ms; before podwright's own start for one that was already running. */
  readonly startMs: number;
  /** The pod's; empty while it has none. */
  readonly address: string;
}

/** A worker's present facts about its container. */
export interface ProbeView {
  readonly container: Container;
  readonly probe: Probe;
  /** Undefined while no instance runs. */
  readonly target: ProbeTarget | undefined;
  readonly started: boolean;
  readonly ending: boolean;
  readonly hide: HideSecrets;
}

/**
 * One probe of one container, from its start on, instance after instance. Facts about the container come through {@link
 * look}; verdicts go to the results.
 */
export class ProbeWorker {
  readonly type: ProbeType;
  readonly #deps: ProbeWorkerDependencies;
  readonly #pod: PodRef;
  #view: ProbeView;
  #times: ProbeTimes;
  #streak: Streak = noStreak;
  #failures: FailureLog;
  /** This instance has a final verdict. */
  #settled = false;
  #wait: Disposable | undefined;
  #probing: AbortController | undefined;

  constructor(deps: ProbeWorkerDependencies, pod: PodRef, type: ProbeType, view: ProbeView) {
    this.#deps = deps;
    this.#pod = pod;
    this.type = type;
    this.#view = { ...view, target: undefined };
    this.#times = probeTimes(view.probe);
    this.#failures = new FailureLog(type, this.#times.failureThreshold);
  }

  /** True while a probe is in progress. */
  get isProbing(): boolean {
    return this.#probing !== undefined;
  }

  /** Applies the newest facts: starts, continues or stops probing. */
  look(view: ProbeView): void {
    const before = this.#view;
    this.#view = view;
    if (view.probe !== before.probe) this.#times = probeTimes(view.probe);
    if (view.target?.id !== before.target?.id) this.#changeTarget(before.target, view.target);
    if (!this.#mayProbe()) return this.#cancel();
    if (this.#wait !== undefined || this.#probing !== undefined || view.target === undefined) return;
    const { clock, random, ownStartMs } = this.#deps;
    const containerStartMs = view.target.startMs;
    const first = { nowMs: clock.monotonic(), containerStartMs, ownStartMs, draw: random.uniform() };
    this.#schedule(firstProbeMs(this.#times, first));
  }

  /** Stops probing for good. */
  stop(): void {
    this.#cancel();
    if (this.#view.target !== undefined) this.#deps.results.remove(this.#view.target.id, this.type);
    this.#view = { ...this.#view, target: undefined };
    this.#deps.observer?.probeEnded(this.#name);
  }

  get #name(): ProbeName {
    return { pod: this.#pod, container: this.#view.container.name, type: this.type };
  }

  #changeTarget(before: ProbeTarget | undefined, target: ProbeTarget | undefined): void {
    const { results, remembered } = this.#deps;
    this.#cancel();
    if (before !== undefined) results.remove(before.id, this.type);
    this.#streak = noStreak;
    this.#failures = new FailureLog(this.type, this.#times.failureThreshold);
    this.#settled = false;
    if (target === undefined) return;
    const known = remembered(this.#pod.uid, target.id, this.type);
    results.begin(target.id, this.type, known ?? initialResult(this.type));
    this.#settled = this.type === "startup" && known === "success";
  }

  #mayProbe(): boolean {
    const { target, started, ending } = this.#view;
    return mayProbe(this.type, { running: target !== undefined, started, settled: this.#settled, ending });
  }

  #cancel(): void {
    this.#wait?.[Symbol.dispose]();
    this.#wait = undefined;
    this.#probing?.abort(new Error("the container is no longer probed"));
    this.#probing = undefined;
  }

  #schedule(atMs: number): void {
    this.#wait = this.#deps.timers.at(atMs, (dueMs) => {
      this.#wait = undefined;
      void this.#probe(dueMs);
    });
  }

  async #probe(dueMs: number): Promise<void> {
    const { clock, runner, log } = this.#deps;
    const { container, probe, target, hide } = this.#view;
    const subject = (): string => `${this.#pod.uid}/${container.name} ${this.type}`;
    // Stopping the probe also cancels the wait.
    invariant("only running containers are probed", target !== undefined && this.#mayProbe(), subject);
    invariant("a container has one probe at a time", this.#probing === undefined, subject);
    if (target === undefined) return;
    const controller = new AbortController();
    this.#probing = controller;
    const action = (): ReturnType<typeof probeAction> => probeAction(container, probe, target.address);
    try {
      const order = { id: target.id, action, timeoutMs: this.#times.timeoutMs, dueMs, hide };
      const beganMs = clock.monotonic();
      const outcome = await runner.run(order, controller.signal);
      this.#deps.observer?.probed(this.#name, outcome.kind, clock.monotonic() - beganMs);
      if (controller.signal.aborted) return;
      this.#take(outcome, target);
    } catch (error) {
      if (controller.signal.aborted) return;
      log.error("probe worker failed", { ...this.#pod, container: container.name, error: errorMessage(error) });
    }
    // The verdict may have ended the probing of this instance.
    if (controller.signal.aborted) return;
    this.#probing = undefined;
    if (this.#mayProbe()) this.#schedule(nextProbeMs(this.#times, dueMs, clock.monotonic()));
  }

  #take(outcome: ProbeOutcome, target: ProbeTarget): void {
    const { container, probe } = this.#view;
    const { clock, results } = this.#deps;
    // The end of an instance cancels its probes.
    const isItsOwn = target.id === this.#view.target?.id;
    invariant("a probe result belongs to the probed instance", isItsOwn, () => `${this.#pod.uid}: ${target.id}`);
    results.saw(target.id, this.type, { kind: outcome.kind, text: outcome.text, at: clock.now() });
    const what = describeProbe(probe);
    const eventText = outcome.eventText ?? outcome.text;
    if (outcome.kind === "error") {
      const eventMessage = `${capitalised(this.type)} probe errored and resulted in unknown state: ${what}: ${eventText}`;
      this.#note("Unhealthy", `${this.type} probe errored: ${what}: ${outcome.text}`, outcome, eventMessage);
      return;
    }
    if (outcome.kind === "warning") {
      const eventMessage = `${capitalised(this.type)} probe warning: ${eventText}`;
      this.#note("ProbeWarning", `${this.type} probe warning: ${outcome.text}`, outcome, eventMessage);
    }
    const result = outcome.kind === "failure" ? "failure" : "success";
    const { streak, verdict } = judge(this.#streak, result, this.#times);
    this.#streak = streak;
    let cause: Cause;
    if (result === "failure") {
      const detail = `${what}: ${outcome.text}`;
      const message = this.#failures.message(streak.length, detail);
      cause = this.#failures.add(message, {
        detail,
        entry: this.#note("Unhealthy", message, outcome, this.#failures.eventMessage(streak.length, eventText, what)),
        lateMs: outcome.lateMs,
      });
    } else {
      this.#failures.clear();
      cause = { code: `${capitalised(this.type)}ProbeSucceeded`, message: `${this.type} probe succeeded (${what})` };
    }
    if (verdict === undefined) return;
    this.#settled = isFinal(this.type, verdict);
    const { name } = container;
    results.set({
      pod: this.#pod,
      container: name,
      id: target.id,
      type: this.type,
      result: verdict,
      cause,
    });
  }

  #note(what: "Unhealthy" | "ProbeWarning", message: string, outcome: ProbeOutcome, eventMessage?: string): number {
    const { text, lateMs } = outcome;
    return this.#deps.journal.record({
      kind: "observation",
      what,
      message,
      pod: this.#pod,
      container: this.#view.container.name,
      data: { probe: this.type, output: text, lateMs, ...(eventMessage && { eventMessage }) },
    });
  }
}
