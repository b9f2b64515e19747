import type { Pod } from "../api/pod.ts";
import type { PodPhase } from "../api/status.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import { wholeSeconds } from "../runtime/actions/grace.ts";
import type { Effects } from "../runtime/effects.ts";
import type { PodRuntime } from "../runtime/operations/pod-runtime.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { hasStopped, remainsOf } from "../runtime/status/remains.ts";
import type { PodCheckpoint } from "./pod-checkpoint.ts";
import type { PodObserver } from "./pod-observer.ts";
import type { PodOperations } from "./pod-operations.ts";
import type { Ending } from "./ending.ts";
import type { Terminated, Terminating, WorkerState } from "./worker-state.ts";

export interface TerminationDependencies {
  readonly effects: Pick<Effects, "clock">;
  readonly runtime: Pick<PodRuntime, "killPod" | "release" | "removePod">;
  readonly holdsStop: StopHold;
  /** Whether a UID is desired again while its previous pod is not removed yet. */
  readonly comesBack: (uid: PodUid) => boolean;
  /** The pod's phase as last reported. */
  readonly phaseOf: (uid: PodUid) => PodPhase | undefined;
}

/** What else the pod's worker has. */
interface WorkerParts {
  readonly operations: Pick<PodOperations, "calledOffUntil">;
  readonly observer: Pick<PodObserver, "acted" | "ending">;
  readonly checkpoint: Pick<PodCheckpoint, "save" | "stopped" | "stopping">;
}

/** A pod that stops, as its worker has it. */
export interface StoppingPod {
  readonly uid: PodUid;
  readonly ref: PodRef;
  readonly pod: Pod | undefined;
  readonly forgotten: boolean;
}

/** A pod's worker, for those who judge whether another may stop. */
export interface EndingWorker extends StoppingPod {
  readonly state: WorkerState;
}

/** Until when (monotonic ms) a pod that no source wants is not stopped yet, because others need it; undefined: it may stop. */
export type StopHold = (stopping: StoppingPod, ending: Ending) => number | undefined;

/** What is to be done next about a pod that stops. waitUntilMs: monotonic. */
type NextStop =
  | { readonly kind: "stop" }
  | { readonly kind: "stopped" }
  | { readonly waitUntilMs: number; readonly kind: "wait" };

/** Consecutive stops that left something to stop: more is a loop that needs a pause, not progress. */
const maxStopsInARow = 5;

/** Stops a pod for good, releases its holdings and removes it (upstream's SyncTerminatingPod and SyncTerminatedPod). */
export class PodTermination {
  readonly #deps: TerminationDependencies;
  readonly #worker: WorkerParts;
  #stopsInARow = 0;

  constructor(deps: TerminationDependencies, worker: WorkerParts) {
    this.#deps = deps;
    this.#worker = worker;
  }

  /** The worker has changed its state. */
  entered(): void {
    this.#stopsInARow = 0;
  }

  next({ killAtMs }: Terminating | Terminated, status: PodStatus): NextStop {
    const isStopped = hasStopped(status);
    const waitUntilMs = this.#worker.operations.calledOffUntil(isStopped, killAtMs);
    if (waitUntilMs !== undefined) return { kind: "wait", waitUntilMs };
    // Stopped at least once in any case: a pod that ended by itself still holds resources.
    const wasStopped = this.#stopsInARow > 0 || status.sandboxes.length === 0;
    return wasStopped && isStopped ? { kind: "stopped" } : { kind: "stop" };
  }

  /** The state of a pod that others need until then; its grace period begins afterwards. Undefined: it may stop. */
  held(
    stopping: StoppingPod,
    state: Terminating | Terminated,
    status: PodStatus,
  ): { readonly untilMs: number; readonly state: Terminating } | undefined {
    if (!stopping.forgotten || state.kind !== "terminating" || hasStopped(status)) return undefined;
    const untilMs = this.#deps.holdsStop(stopping, state.ending);
    if (untilMs === undefined) return undefined;
    const killAtMs = Math.max(state.killAtMs, untilMs + state.ending.graceSeconds * 1000);
    return { untilMs, state: { ...state, killAtMs } };
  }

  /** Stops what runs of it. False: stopped often enough for now. */
  async stop(
    { ref, pod, forgotten }: StoppingPod,
    { ending, killAtMs, killsAtMs }: Terminating | Terminated,
    status: PodStatus,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { effects, runtime } = this.#deps;
    const { checkpoint, observer } = this.#worker;
    await checkpoint.stopping(pod, forgotten ? undefined : ending);
    try {
      using _ending = observer.ending();
      const left = (atMs: number): number => Math.max(0, wholeSeconds(atMs - effects.clock.monotonic()));
      const graces = new Map([...(killsAtMs ?? [])].map(([id, atMs]) => [id, left(atMs)]));
      const target = { ref, pod, graceSeconds: left(killAtMs), cause: ending.cause };
      await runtime.killPod(target, { ...remainsOf(status), graces }, signal);
      return ++this.#stopsInARow <= maxStopsInARow;
    } finally {
      observer.acted();
    }
  }

  /** Releases the holdings of a pod that stays listed. False: its end may not be recorded yet. */
  async release(ref: PodRef, { released }: Terminated, signal: AbortSignal): Promise<boolean> {
    this.#worker.checkpoint.stopped(this.#deps.phaseOf(ref.uid));
    // The disk may be full.
    const isSaved = await this.#worker.checkpoint.save();
    const cause: Cause = { code: "PodTerminated", message: "the pod has ended and no longer needs its volumes" };
    if (!released) await this.#deps.runtime.release(ref, cause, signal);
    return isSaved;
  }

  /** Removes everything of an orphaned pod. */
  async remove(
    { uid, ref, pod }: StoppingPod,
    { released }: Terminated,
    { status, cause }: { readonly status: PodStatus; readonly cause: Cause },
    signal: AbortSignal,
  ): Promise<void> {
    const { comesBack, runtime } = this.#deps;
    const { checkpoint, observer } = this.#worker;
    await checkpoint.stopping(pod, undefined);
    try {
      const removal = { cause, comesBack: comesBack(uid), hasReleased: released };
      await runtime.removePod(ref, status, removal, signal);
    } finally {
      observer.acted("requestInspectAfresh");
    }
  }
}
