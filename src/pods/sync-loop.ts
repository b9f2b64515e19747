import { isDeleted } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import type { DeliveredEvent } from "../pleg/lifecycle-events.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { AllocationManager } from "../resources/allocation-manager.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import type { Effects } from "../runtime/effects.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { type AdmissionChain, decideAdmission, resizeObjection } from "./admission.ts";
import { AdmissionQueue } from "./admission-queue.ts";
import type { ClusterHooks } from "./cluster-hooks.ts";
import { type Ending, resumed, unwanted } from "./ending.ts";
import type { PodChange } from "./pod-change.ts";
import type { PodEndings } from "./pod-endings.ts";
import type { PodKiller } from "./pod-killer.ts";
import type { PodWorkers } from "./pod-workers.ts";
import type { PredicateNode } from "./predicates.ts";
import { refused, type Rejection } from "./rejection.ts";
import type { UnclaimedPods } from "./unclaimed-pods.ts";

export interface SyncLoopDependencies {
  readonly effects: Pick<Effects, "journal">;
  readonly node: Pick<NodeContext, "resources">;
  readonly pleg: Pick<Pleg, "events" | "isListed" | "ran">;
  readonly workers: PodWorkers;
  readonly killer: PodKiller;
  readonly allocations: Pick<AllocationManager, "allocatedPod" | "retry">;
  readonly admission: AdmissionChain;
  /** Undefined: standalone. */
  readonly cluster: Pick<ClusterHooks, "place" | "refreshPlace"> | undefined;
  readonly endings: Pick<PodEndings, "take">;
  readonly unclaimed: Pick<UnclaimedPods, "holding">;
  /** Whether the API server reports the pod, unknown to this run so far, as ended. */
  readonly hadEnded: (uid: PodUid) => boolean;
}

/**
 * Connects sources and PLEG with the pod workers. A pod comes here once, and once more when it has been admitted. Never
 * blocks on a pod.
 */
export class SyncLoop {
  readonly #deps: SyncLoopDependencies;
  readonly #queue: AdmissionQueue;

  constructor(deps: SyncLoopDependencies) {
    this.#deps = deps;
    this.#queue = new AdmissionQueue({
      workers: deps.workers,
      killer: deps.killer,
      unclaimed: () => deps.unclaimed.holding(),
      journal: deps.effects.journal,
      granted: (pod) => deps.allocations.allocatedPod(pod),
      decide: (pod, holders) => decideAdmission(pod, deps.admission, { holders, node: this.#predicateNode() }),
      refreshPlace: deps.cluster && (async () => await deps.cluster?.refreshPlace()),
      next: (change, rejection) => this.#pass(change, rejection),
    });
  }

  /** Pods that wait for room. */
  get waiting(): Pod[] {
    return this.#queue.pods;
  }

  /** Rechecks the pods that wait for resources. */
  retry(): void {
    this.#queue.retry();
  }

  /** A pod has stopped: others may have room now. @param isWanted some source has it */
  roomMade(isWanted: boolean): void {
    this.#deps.killer.look();
    this.#queue.retry();
    const code = isWanted ? "RoomMade" : "PodsRemoved";
    this.#deps.allocations.retry({ code, message: `a pod that ${isWanted ? "has ended" : "was removed"} has stopped` });
  }

  /** Why a running pod must not be allocated what it requests now; undefined: no objection. */
  objection(wanted: Pod, granted: Pod, others: readonly Pod[]): string | undefined {
    return resizeObjection(wanted, granted, others, this.#deps.admission, this.#predicateNode());
  }

  /** Receives a change of the desired pods. */
  handle(change: PodChange): void {
    const { allocations, workers } = this.#deps;
    const { pod, cause } = change;
    const { uid } = pod.metadata;
    if (this.#queue.update(change)) {
      const left: Cause = { code: "PodsRemoved", message: "a pod that waited for room is no longer desired" };
      if (change.op === "remove") allocations.retry(left);
      return;
    }
    if (change.op === "remove") {
      workers.remove(uid, cause, change.graceSeconds);
      return;
    }
    const end = change.op === "add" ? this.#endBefore(change) : undefined;
    if (end !== undefined) {
      this.#pass(change, undefined);
      workers.terminate(uid, end);
      return;
    }
    // A pod that already runs was admitted before: a restart of podwright must not stop it.
    const known = change.op === "update" || isDeleted(pod) || this.#mayRunOn(pod);
    if (known) this.#pass(change, undefined);
    else this.#queue.add(change);
  }

  /** Dispatches PLEG's events until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let events: DeliveredEvent[];
      try {
        events = await this.#deps.pleg.events.take(signal);
      } catch {
        return;
      }
      for (const event of events) this.#deps.workers.observed(event);
    }
  }

  /** Why the pod had ended before this run: it never runs again. */
  #endBefore({ pod, cause }: PodChange): Ending | undefined {
    const { endings, hadEnded, workers } = this.#deps;
    const { uid } = pod.metadata;
    const end = endings.take(uid);
    const graceSeconds = gracePeriodSeconds(pod);
    if (hadEnded(uid)) {
      const ended: Cause = { code: "PodHadEnded", message: "the pod had already ended", because: cause };
      return unwanted(ended, graceSeconds);
    }
    // Beside one that is still stopping it is another instance of the pod.
    return end && workers.get(uid) === undefined ? resumed(end, cause, graceSeconds) : undefined;
  }

  #predicateNode(): PredicateNode {
    const { cluster, node } = this.#deps;
    return { allocatable: node.resources.allocatable, place: cluster?.place() };
  }

  #pass({ pod, cause }: PodChange, rejection: Rejection | undefined): void {
    const { admission, effects, workers } = this.#deps;
    const { uid } = pod.metadata;
    // A rejected pod holds nothing, and is allocated its request of that time if it is ever admitted. Nor does a pod that
    // has ended, whatever changes about it: nothing would release it again.
    const hasEnded = workers.get(uid)?.state.kind === "terminated";
    if (rejection === undefined && !hasEnded) admission.reserve(pod, cause);
    workers.update(pod, cause);
    if (isDeleted(pod)) {
      const deleted: Cause = { code: "PodDeleted", message: "the pod is being deleted", because: cause };
      workers.terminate(uid, unwanted(deleted, gracePeriodSeconds(pod)));
    }
    if (rejection === undefined) return;
    const { reason, message } = rejection;
    const entry = effects.journal.record({ kind: "decision", what: reason, message, pod: podRef(pod), cause });
    workers.terminate(uid, refused(rejection, entry));
  }

  /**
   * Something of it runs, so it was admitted in this or an earlier run. Its host ports may belong to another pod now,
   * admitted while this one was an orphan. Remains, as after a restart of the machine, hold nothing and are admitted anew.
   * What the runtime has of a pod that ends says nothing of one that returns under its UID: that one keeps its place, but
   * may be rejected.
   */
  #mayRunOn(pod: Pod): boolean {
    const { pleg, workers } = this.#deps;
    const { uid } = pod.metadata;
    const worker = workers.get(uid);
    const isThere = worker === undefined ? pleg.ran(uid) : pleg.isListed(uid);
    if (!isThere) return false;
    const isEnding = worker !== undefined && worker.state.kind !== "syncing";
    return !this.#queue.lost(pod, isEnding ? undefined : "NodePorts");
  }
}
