import type { Pod } from "../api/pod.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { ActiveDeadline } from "./active-deadline.ts";
import type { PodOperations } from "./pod-operations.ts";
import { type PodResizing, resizeNow } from "./pod-resize.ts";
import type { PodObserver } from "./pod-observer.ts";
import type { RestartTimes } from "./restart-times.ts";
import type { StartFailures } from "./start-failures.ts";
import { firstView } from "./waiting-pod.ts";
import type { WorkerDependencies, WorkerView } from "./worker-dependencies.ts";
import type { WorkerState } from "./worker-state.ts";

/** What else a worker knows of its pod. */
interface Learned {
  readonly failures: StartFailures;
  readonly restarts: RestartTimes;
  readonly resizing: PodResizing;
  readonly operations: PodOperations;
  readonly observer: PodObserver;
  readonly activeDeadline: ActiveDeadline;
}

interface ViewedWorker {
  readonly ref: PodRef;
  readonly pod: Pod | undefined;
  readonly state: WorkerState;
}

/** The published view of one pod. Belongs to its worker. */
export class WorkerViews {
  readonly #deps: Pick<WorkerDependencies, "publish" | "cache" | "allocations" | "actuated">;
  readonly #learned: Learned;
  #latest: WorkerView | undefined;

  constructor(deps: Pick<WorkerDependencies, "publish" | "cache" | "allocations" | "actuated">, learned: Learned) {
    this.#deps = deps;
    this.#learned = learned;
  }

  /** The latest view, including changes after its step. */
  current({ ref, pod, state }: ViewedWorker): WorkerView {
    const { cache } = this.#deps;
    const seen = this.#latest ?? firstView({ ref, pod, state, status: cache.get(ref.uid).status });
    const resize = resizeNow(this.#deps, pod, seen);
    return { ...seen, pod: this.#learned.resizing.granted(pod) ?? seen.pod, state, resize };
  }

  /** Publishes the result of a step. @param actions the latest decision, for its waits */
  publish({ ref, pod, state }: ViewedWorker, status: PodStatus, actions: PodActions | undefined, cause: Cause): void {
    const { failures, restarts, resizing, operations, observer, activeDeadline } = this.#learned;
    this.#latest = {
      ref,
      pod: resizing.granted(pod),
      state,
      status,
      starting: operations.inPostStart(pod, status),
      waiting: failures.waiting(pod, actions, restarts),
      tried: failures.tried,
      restarting: restarts.restarting,
      terminationMessages: observer.messages,
      startedAt: activeDeadline.startedAt,
      resize: resizing.view(),
    };
    this.#deps.publish(this.#latest, cause);
  }
}
