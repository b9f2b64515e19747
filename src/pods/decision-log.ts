import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { ContainerWait } from "../runtime/container-decision.ts";
import { isIdle, type PodActions } from "../runtime/pod-actions.ts";
import { awaited, describeActions } from "./describe-actions.ts";
import type { StartFailures } from "./start-failures.ts";
import type { WorkerState } from "./worker-state.ts";

/** Writes a pod's decisions to the journal: each once, not at every look that confirms it. */
export class DecisionLog {
  readonly #journal: Recorder;
  readonly #clock: Clock;
  readonly #pod: PodRef;
  readonly #failures: Pick<StartFailures, "of">;
  #last = "";
  /** Waits that have been told. */
  #waits: ReadonlySet<string> = new Set();

  constructor(journal: Recorder, clock: Clock, pod: PodRef, failures: Pick<StartFailures, "of">) {
    this.#journal = journal;
    this.#clock = clock;
    this.#pod = pod;
    this.#failures = failures;
  }

  record(actions: PodActions, cause: Cause): void {
    const parts = describeActions(actions).map(({ text, cause: why }) => `${text}: ${why.message}`);
    const waits = new Set(actions.waits.map(waitKey));
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
      const waitMs = wait.untilMs - this.#clock.monotonic();
      const failure = wait.exited === undefined ? this.#failures.of(wait.container) : undefined;
      const because = failure === undefined ? "" : `: ${failure.reason}: ${failure.message}`;
      this.#journal.record({
        kind: "decision",
        what: wait.exited === undefined ? "StartRetry" : "BackOff",
        message: `container ${wait.container.name} waits ${Math.ceil(waitMs / 1000)} s before its ${awaited(wait)}${because}`,
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

/** What makes a wait another than the one before: not the time that passes. */
function waitKey({ container, exited, untilMs }: ContainerWait): string {
  return `${container.name} ${exited === undefined ? untilMs : exited.id}`;
}
