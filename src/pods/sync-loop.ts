import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { DeliveredEvent, Pleg } from "../pleg/pleg.ts";
import type { AllocationManager } from "../resources/allocation-manager.ts";
import type { RuntimeDependencies } from "../runtime/dependencies.ts";
import { gracePeriodSeconds } from "../runtime/grace.ts";
import { keptSpec } from "../runtime/kept-spec.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { admit, admitHugePages, hasHostPorts, type Rejection, unsupportedReason } from "./admission.ts";
import { AfterListing } from "./after-listing.ts";
import { admitToNode, type NodeAdmission } from "./node-admission.ts";
import type { PodChange } from "./pod-change.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface SyncLoopDependencies {
  readonly runtime: RuntimeDependencies;
  readonly pleg: Pleg;
  readonly cache: PodCache;
  readonly workers: PodWorkers;
  readonly allocations: Pick<AllocationManager, "wanted">;
  /** True once every source has said what it wants: before that nothing is known to be unwanted. */
  readonly sourcesReady: () => boolean;
  /** Which of the runtime's pods are this node's to remove. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** Pods that left something on disk or in the cgroup tree, and how to remove that. */
  readonly leftovers: Leftovers;
  readonly housekeepingPeriodMs: number;
  readonly admission: NodeAdmission;
  /** What of a pod this version can't do; empty: nothing. */
  readonly unsupported: (pod: Pod) => string;
}

/** What pods leave behind outside of the runtime. */
export interface Leftovers {
  podUids(): Promise<ReadonlySet<string>>;
  remove(uid: string, signal: AbortSignal): Promise<void>;
}

/**
 * Brings together what is wanted (sources) and what happens (PLEG) in the pod workers, and looks for pods that are there
 * although nobody wants them. Nothing here waits for a pod.
 */
export class SyncLoop {
  readonly #deps: SyncLoopDependencies;
  readonly #afterListing: AfterListing;
  #knowsAll = false;

  constructor(deps: SyncLoopDependencies) {
    this.#deps = deps;
    this.#afterListing = new AfterListing(deps.pleg, (change) => this.#take(change));
  }

  /**
   * True once every pod that an earlier life left in the runtime has a worker, also one that nobody wants any more.
   * Before that, a pod without a worker may run.
   */
  get knowsAll(): boolean {
    return this.#knowsAll;
  }

  /** Takes a change of what is wanted. */
  handle(change: PodChange): void {
    if (!this.#afterListing.holds(change, hasHostPorts(change.pod))) this.#take(change);
  }

  #take(change: PodChange): void {
    const { workers } = this.#deps;
    const { pod, cause } = change;
    if (change.op === "remove") {
      workers.remove(podUid(pod.metadata.uid), cause, change.graceSeconds);
      return;
    }
    // A pod that runs already was admitted before: a restart of podwright must not take it down again.
    const known = change.op === "update" || isDeleted(pod) || this.#runs(podUid(pod.metadata.uid));
    const rejection = known ? undefined : this.#admit(pod);
    this.#deps.allocations.wanted(pod, cause);
    workers.update(pod, cause);
    if (isDeleted(pod)) {
      const deleted: Cause = { code: "PodDeleted", message: "the pod is being deleted", because: cause };
      workers.get(podUid(pod.metadata.uid))?.terminate(deleted, gracePeriodSeconds(pod));
    }
    if (rejection === undefined) return;
    const entry = this.#deps.runtime.journal.record({
      kind: "decision",
      what: rejection.reason,
      message: rejection.message,
      pod: podRef(pod),
      cause,
    });
    workers.get(podUid(pod.metadata.uid))?.terminate({ code: rejection.reason, message: rejection.message, entry }, 1);
  }

  /** Passes PLEG's events on and keeps house until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#passEvents(signal), this.#keepHouse(signal)]);
  }

  async #passEvents(signal: AbortSignal): Promise<void> {
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

  async #keepHouse(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#housekeeping(signal);
      } catch (error) {
        this.#deps.runtime.log.warn("housekeeping failed", { error: errorMessage(error) });
      }
      await this.#deps.runtime.clock.sleep("housekeeping", this.#deps.housekeepingPeriodMs, signal).catch(() => {});
    }
  }

  /** One look for pods that nobody wants: in the runtime, on disk, in the cgroup tree. */
  async #housekeeping(signal: AbortSignal): Promise<void> {
    const { workers, cache, pleg, owns, leftovers, runtime } = this.#deps;
    if (!this.#deps.sourcesReady() || pleg.lastRelistMs === undefined) return;
    for (const uid of cache.uids()) {
      if (workers.get(uid) !== undefined) continue;
      const { status, error } = cache.get(uid);
      if (status.sandboxes.length > 0 || status.containers.length > 0) {
        if (!(await owns(uid))) continue;
        const pod = await keptSpec(runtime.files, runtime.node, uid);
        const cause: Cause = { code: "OrphanedPod", message: "no source wants this pod" };
        workers.removeOrphan({ uid, name: status.name, namespace: status.namespace }, pod, cause);
      } else if (error === undefined) {
        cache.delete(uid);
      }
    }
    this.#knowsAll ||= pleg.listed.every((uid) => cache.uids().includes(uid));
    for (const uid of await leftovers.podUids()) {
      const pod = podUid(uid);
      // One that the runtime lists and that could not be inspected yet may run, on the volumes that are here.
      const known = workers.get(pod) !== undefined || cache.uids().includes(pod) || pleg.isListed(pod);
      if (!known) await leftovers.remove(uid, signal);
    }
  }

  #admit(pod: Pod): Rejection | undefined {
    const unsupported = this.#deps.unsupported(pod);
    if (unsupported !== "") return { reason: unsupportedReason, message: `Pod was rejected: ${unsupported}` };
    const active = this.#activePods(pod);
    const { allocatable } = this.#deps.runtime.node.resources;
    return admitToNode(pod, this.#deps.admission) ?? admit(pod, active) ?? admitHugePages(pod, active, allocatable);
  }

  /** The runtime has something of it: it was admitted, in this life or an earlier one. */
  #runs(uid: PodUid): boolean {
    return this.#deps.pleg.isListed(uid);
  }

  /** Pods that hold resources of the node. One of the same full name is on its way out: the new one waits for it. */
  #activePods(candidate: Pod): Pod[] {
    const sameName = (pod: Pod): boolean =>
      pod.metadata.name === candidate.metadata.name && pod.metadata.namespace === candidate.metadata.namespace;
    const active = (worker: PodWorker): boolean =>
      worker.state.kind === "syncing" || worker.state.kind === "terminating";
    return this.#deps.workers
      .list()
      .filter((worker) => active(worker) && !worker.forgotten)
      .map((worker) => worker.pod)
      .filter((pod) => pod !== undefined)
      .filter((pod) => !sameName(pod));
  }
}

/** The API server was asked to delete it: it is to stop, and never to run again. */
function isDeleted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}
