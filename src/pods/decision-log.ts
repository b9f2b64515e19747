import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { ContainerWait } from "../runtime/actions/container-decision.ts";
import { isIdle, type PodActions } from "../runtime/actions/pod-actions.ts";
import { awaited, describeActions, isPodRestart } from "./describe-actions.ts";
import type { StartFailures, Waiting } from "./start-failures.ts";
import type { WorkerState } from "./worker-state.ts";

/** Records a pod's decisions in the journal: each once, not at every sync that repeats it. */
export class DecisionLog {
  readonly #journal: Recorder;
  readonly #clock: Clock;
  readonly #pod: PodRef;
  readonly #failures: Pick<StartFailures, "of" | "sandbox">;
  #last = "";
  /** Waits already recorded. */
  #waits: ReadonlySet<string> = new Set();

  constructor(journal: Recorder, clock: Clock, pod: PodRef, failures: Pick<StartFailures, "of" | "sandbox">) {
    this.#journal = journal;
    this.#clock = clock;
    this.#pod = pod;
    this.#failures = failures;
  }

  record(actions: PodActions, cause: Cause): void {
    const parts = describeActions(actions).map(({ text, cause: why }) => `${text}: ${why.message}`);
    const { sandboxWaitUntilMs } = actions;
    const sandboxWait = sandboxWaitUntilMs === undefined ? [] : [`sandbox ${sandboxWaitUntilMs}`];
    const waits = new Set([...actions.waits.map(waitKey), ...sandboxWait]);
    const key = parts.join("; ");
    if (key === this.#last && waits.symmetricDifference(this.#waits).size === 0) return;
    const known = this.#waits;
    this.#last = key;
    this.#waits = waits;
    if (!isIdle(actions)) {
      const waiting = actions.waits.map((wait) => `container ${wait.container.name} waits for its ${awaited(wait)}`);
      const message = [...parts, ...waiting].join("; ");
      this.#journal.record({ kind: "decision", what: "ComputePodActions", message, pod: this.#pod, cause });
    }
    for (const wait of actions.waits) {
      if (known.has(waitKey(wait))) continue;
      const failure = wait.exited === undefined ? this.#failureOf(wait) : undefined;
      const { message, until } = this.#wait(`container ${wait.container.name}`, awaited(wait), wait.untilMs, failure);
      this.#journal.record({
        kind: "decision",
        what: wait.exited === undefined ? "StartRetry" : "BackOff",
        message,
        pod: this.#pod,
        container: wait.container.name,
        cause: wait.cause,
        until,
      });
    }
    if (sandboxWaitUntilMs === undefined || sandboxWait.some((wait) => known.has(wait))) return;
    const failure = this.#failures.sandbox;
    const what = failure === undefined ? "next sandbox" : "retry";
    const wait = this.#wait("the pod", what, sandboxWaitUntilMs, failure);
    this.#journal.record({ kind: "decision", what: "StartRetry", ...wait, pod: this.#pod, cause });
  }

  #failureOf({ container, cause }: ContainerWait): Waiting | undefined {
    return isPodRestart(cause) ? this.#failures.sandbox : this.#failures.of(container);
  }

  #wait(who: string, what: string, untilMs: number, failure: Waiting | undefined): { message: string; until: number } {
    const waitMs = untilMs - this.#clock.monotonic();
    const because = failure === undefined ? "" : `: ${failure.reason}: ${failure.message}`;
    const message = `${who} waits ${Math.ceil(waitMs / 1000)} s before its ${what}${because}`;
    return { message, until: Math.round(this.#clock.now() + waitMs) };
  }

  /** Another pod of the same name must be removed first. Returns the record, and whether it is new. */
  waitsFor(rival: string): { readonly message: string; readonly isNews: boolean } {
    const message = `waiting for the removal of pod ${rival} of the same name`;
    const isNews = message !== this.#last;
    this.#last = message;
    if (isNews) this.#journal.record({ kind: "decision", what: "PodWaits", message, pod: this.#pod });
    return { message, isNews };
  }

  entered(from: WorkerState, to: WorkerState): void {
    // No pod comes to run that did something else before.
    if (to.kind === "syncing") return;
    const until =
      to.kind === "terminating" ? { until: Math.round(this.#clock.now() + to.killAtMs - this.#clock.monotonic()) } : {};
    this.#journal.record({
      kind: "decision",
      what: stateEntry[to.kind],
      message: stateText[to.kind],
      pod: this.#pod,
      ...("ending" in to ? { cause: to.ending.cause } : {}),
      ...until,
      data: { from: from.kind, to: to.kind },
    });
  }

  /** A step in that state failed with a message, and is retried. */
  failed(state: WorkerState["kind"], message: string, cause: Cause): void {
    const what = state === "terminating" ? "FailedKillPod" : "FailedSync";
    this.#journal.record({ kind: "observation", what, message, pod: this.#pod, cause });
  }
}

type EnteredState = Exclude<WorkerState["kind"], "syncing">;

const stateEntry = {
  terminating: "PodTerminating",
  terminated: "PodTerminated",
  finished: "PodFinished",
} as const satisfies Record<EnteredState, string>;

const stateText = {
  terminating: "the pod is being stopped",
  terminated: "the pod has stopped",
  finished: "the pod is removed",
} as const satisfies Record<EnteredState, string>;

/** What distinguishes one wait from another; the remaining time does not. */
function waitKey({ container, exited, untilMs }: ContainerWait): string {
  return `${container.name} ${exited === undefined ? untilMs : exited.id}`;
}
