import type { Pod } from "../api/pod.ts";
import type { PodStatus as ApiPodStatus } from "../api/status.ts";
import type { PodUid } from "../base/ids.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { OwnStaticPod } from "../pods/mirror-actions.ts";
import { ownStaticPods } from "../pods/own-static-pods.ts";
import type { PodWorkers } from "../pods/pod-workers.ts";
import type { StartUpGate } from "../pods/start-up-gate.ts";
import type { SyncLoop } from "../pods/sync-loop.ts";
import { waitingView } from "../pods/waiting-pod.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { StatusManager } from "../status/status-manager.ts";

/** One pod with everything that is known of it. */
export interface KnownPod {
  readonly view: WorkerView;
  /** Undefined before the first observation of the pod. */
  readonly status: ApiPodStatus | undefined;
  /** No source has the pod any more. */
  readonly forgotten: boolean;
  /** As a source has it now; of one that returns under its UID, the new pod. Undefined: no source has it. */
  readonly desired: Pod | undefined;
  /** waiting: it has no worker yet. orphan: it was found in the runtime when no source had it. */
  readonly work: "waiting" | "own" | "orphan";
}

export interface KnownPodsDependencies {
  readonly workers: PodWorkers;
  readonly gate: Pick<StartUpGate, "pods">;
  readonly syncLoop: Pick<SyncLoop, "waiting">;
  readonly statuses: Pick<StatusManager, "get">;
  readonly cache: Pick<PodCache, "get" | "has">;
  readonly pleg: Pick<Pleg, "isListed">;
}

/** The pods of a node that are wanted or not yet gone. */
export class KnownPods {
  readonly #deps: KnownPodsDependencies;

  constructor(deps: KnownPodsDependencies) {
    this.#deps = deps;
  }

  list(): KnownPod[] {
    const { workers, statuses } = this.#deps;
    const known = workers.list().map(({ uid, view, forgotten, pod }): KnownPod => {
      const work = workers.isOrphan(uid) ? "orphan" : "own";
      return { view, status: statuses.get(uid), forgotten, desired: forgotten ? this.#returning(uid) : pod, work };
    });
    const waiting = this.waiting().map((pod): KnownPod => {
      return { view: waitingView(pod), status: undefined, forgotten: false, desired: pod, work: "waiting" };
    });
    return [...known, ...waiting];
  }

  /** Pods that are wanted and have no worker yet. */
  waiting(): Pod[] {
    return this.#held().filter(({ metadata }) => !this.#deps.workers.has(metadata.uid));
  }

  /** The desired pod; undefined also for a pod that waits for admission. */
  get(uid: PodUid): Pod | undefined {
    return this.#deps.workers.get(uid)?.pod;
  }

  has(uid: PodUid): boolean {
    const isWaiting = (): boolean => this.waiting().some(({ metadata }) => metadata.uid === uid);
    return this.#deps.workers.has(uid) || isWaiting();
  }

  statics(): OwnStaticPod[] {
    return ownStaticPods(this.#deps.workers.list(), this.waiting());
  }

  /** Their containers and sandboxes, as last observed. */
  observed(): PodStatus[] {
    return this.#deps.workers.list().map(({ uid }) => this.#deps.cache.get(uid).status);
  }

  /** The same of one pod; undefined: it is not a pod of this node. */
  observedOf(uid: PodUid): PodStatus | undefined {
    return this.#deps.workers.has(uid) ? this.#deps.cache.get(uid).status : undefined;
  }

  /** Whether a source or the runtime has the pod. */
  isKnown(uid: PodUid): boolean {
    const { workers, cache, pleg } = this.#deps;
    return workers.has(uid) || cache.has(uid) || pleg.isListed(uid);
  }

  /** The pod that is to start under this UID once the one that no source has any more is gone. */
  #returning(uid: PodUid): Pod | undefined {
    const back = this.#deps.workers.returning(uid)?.pod;
    return back ?? this.#held().find(({ metadata }) => metadata.uid === uid);
  }

  /** Pods on their way to their workers. */
  #held(): Pod[] {
    return [...this.#deps.gate.pods, ...this.#deps.syncLoop.waiting];
  }
}
