import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import { isIdle, type PodActions } from "../runtime/pod-actions.ts";
import { shortId } from "../runtime/sandbox-actions.ts";
import { awaited, describeActions } from "./describe-actions.ts";
import type { WorkerState } from "./worker-state.ts";

/** Writes a pod's decisions to the journal: each once, not at every look that confirms it. */
export class DecisionLog {
  readonly #journal: Recorder;
  readonly #clock: Clock;
  readonly #pod: PodRef;
  #last = "";

  constructor(journal: Recorder, clock: Clock, pod: PodRef) {
    this.#journal = journal;
    this.#clock = clock;
    this.#pod = pod;
  }

  record(actions: PodActions, cause: Cause): void {
    const parts = describe(actions);
    const key = parts.join("; ");
    if (key === this.#last) return;
    this.#last = key;
    if (parts.length === 0) return;
    if (!isIdle(actions)) {
      this.#journal.record({ kind: "decision", what: "ComputePodActions", message: key, pod: this.#pod, cause });
    }
    for (const wait of actions.waits) {
      const waitMs = wait.untilMs - this.#clock.monotonic();
      this.#journal.record({
        kind: "decision",
        what: wait.exited === undefined ? "StartRetry" : "BackOff",
        message: `container ${wait.container.name} waits ${Math.ceil(waitMs / 1000)} s before its ${awaited(wait)}`,
        pod: this.#pod,
        container: wait.container.name,
        cause: wait.cause,
        until: Math.round(this.#clock.now() + waitMs),
      });
    }
  }

  /** Another pod of the same name has to be gone first. */
  waitsFor(rival: string): void {
    const message = `waits until pod ${rival} of the same name is gone`;
    if (message === this.#last) return;
    this.#last = message;
    this.#journal.record({ kind: "decision", what: "PodWaits", message, pod: this.#pod });
  }

  entered(from: WorkerState, to: WorkerState): void {
    const until =
      to.kind === "terminating" ? { until: Math.round(this.#clock.now() + to.killAtMs - this.#clock.monotonic()) } : {};
    this.#journal.record({
      kind: "decision",
      what: stateEntry[to.kind],
      message: stateText[to.kind],
      pod: this.#pod,
      ...("cause" in to ? { cause: to.cause } : {}),
      ...until,
      data: { from: from.kind, to: to.kind },
    });
  }

  failed(message: string, cause: Cause): void {
    this.#journal.record({ kind: "observation", what: "FailedSync", message, pod: this.#pod, cause });
  }
}

const stateEntry = {
  syncing: "PodSyncing",
  terminating: "PodTerminating",
  terminated: "PodTerminated",
  finished: "PodFinished",
} as const satisfies Record<WorkerState["kind"], string>;

const stateText = {
  syncing: "the pod is to run",
  terminating: "the pod is being stopped",
  terminated: "all of the pod has stopped",
  finished: "everything of the pod is removed",
} as const satisfies Record<WorkerState["kind"], string>;

/** Every part of the decision with what makes it different from the one before, but no times that pass. */
function describe(actions: PodActions): string[] {
  const parts = describeActions(actions).map(({ text, cause }) => `${text}: ${cause.message}`);
  for (const { container, exited, untilMs } of actions.waits) {
    const after = exited === undefined ? `a failed start (${untilMs})` : `the exit of ${shortId(exited.id)}`;
    parts.push(`container ${container.name} waits after ${after}`);
  }
  return parts;
}
