import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Cause } from "../journal/entry.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { DeliveredEvent, Pleg } from "../pleg/pleg.ts";
import type { AllocationManager } from "../resources/allocation-manager.ts";
import type { Observer } from "../journal/observer.ts";
import type { Effects } from "../runtime/effects.ts";
import type { NodeContext } from "../runtime/node-context.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { type AdmissionChain, decideAdmission } from "./admission.ts";
import { AdmissionQueue } from "./admission-queue.ts";
import { AfterListing } from "./after-listing.ts";
import type { ClusterHooks } from "./cluster-hooks.ts";
import { type Ending, resumed, unwanted } from "./ending.ts";
import { PodEndings } from "./pod-endings.ts";
import type { PodChange } from "./pod-change.ts";
import { PodKiller } from "./pod-killer.ts";
import { type CheckpointDependencies, keepDeletion } from "./pod-checkpoint.ts";
import type { PodWorkers } from "./pod-workers.ts";
import { refused, type Rejection } from "./rejection.ts";
import { takenUp, takenUpText } from "./taken-up.ts";
import { UnclaimedPods } from "./unclaimed-pods.ts";

export interface SyncLoopDependencies {
  readonly effects: Pick<Effects, "clock" | "journal" | "log">;
  /** Where pod checkpoints are stored. */
  readonly checkpoint: CheckpointDependencies;
  readonly node: Pick<NodeContext, "resources">;
  readonly observer?: Observer | undefined;
  readonly pleg: Pleg;
  readonly cache: PodCache;
  readonly workers: PodWorkers;
  readonly allocations: Pick<AllocationManager, "allocatedPod" | "retry">;
  /** True once every source, or the named one, has delivered: before, no pod is known to be an orphan. */
  readonly sourcesReady: (source?: string) => boolean;
  /** Whether changes are pending that a source has already delivered. */
  readonly moreToCome: () => boolean;
  /** Which of the runtime's pods this node may remove. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** Pods with leftovers on disk or in the cgroup tree, and how to remove those. */
  readonly leftovers: Leftovers;
  readonly housekeepingPeriodMs: number;
  readonly admission: AdmissionChain;
  /** Undefined: standalone. */
  readonly cluster: Pick<ClusterHooks, "place" | "refreshPlace"> | undefined;
  /** Whether the API server reports the pod, unknown to this run so far, as ended. */
  readonly hadEnded: (uid: PodUid) => boolean;
}

/** What pods leave behind outside of the runtime. */
export interface Leftovers {
  podUids(): Promise<ReadonlySet<string>>;
  /** False: something remains that is not podwright's to remove. */
  remove(uid: string, signal: AbortSignal): Promise<boolean>;
}

/** Ms between searches for orphaned pods, until all pods of the runtime are known. */
const firstLookMs = 200;

/** Connects sources and PLEG with the pod workers, and finds orphaned pods. Never blocks on a pod. */
export class SyncLoop {
  readonly #deps: SyncLoopDependencies;
  readonly #afterListing: AfterListing;
  readonly #queue: AdmissionQueue;
  /** For callers that stop pods which sources still have. */
  readonly killer: PodKiller;
  readonly #endings: PodEndings;
  readonly #unclaimed: UnclaimedPods;
  #knowsAll = false;
  #deletions: Promise<void> = Promise.resolve();

  constructor(deps: SyncLoopDependencies) {
    this.#deps = deps;
    const knowsAll = (): boolean => this.#knowsAll;
    this.#unclaimed = new UnclaimedPods(deps.checkpoint);
    const beforeStarts = (): Promise<void> => this.#unclaimed.load();
    this.#afterListing = new AfterListing({ ...deps, knowsAll, beforeStarts, next: (change) => this.#take(change) });
    this.#endings = new PodEndings(deps.checkpoint);
    const { clock, journal } = deps.effects;
    this.killer = new PodKiller({ workers: deps.workers, journal, now: () => clock.monotonic() });
    this.#queue = new AdmissionQueue({
      workers: deps.workers,
      killer: this.killer,
      unclaimed: () => this.#unclaimed.holding((uid) => this.#isUnclaimed(uid)),
      journal,
      granted: (pod) => deps.allocations.allocatedPod(pod),
      decide: (pod, holders) => {
        const { allocatable } = deps.node.resources;
        return decideAdmission(pod, deps.admission, { holders, node: { allocatable, place: deps.cluster?.place() } });
      },
      refreshPlace: deps.cluster && (async () => await deps.cluster?.refreshPlace()),
      next: (change, rejection) => this.#pass(change, rejection),
    });
  }

  /** Reads what earlier runs stored. To be called once, before the first relist. */
  async load(): Promise<void> {
    await this.#endings.load();
  }

  /**
   * True once every pod that an earlier run left in the runtime has a worker, orphans included. Before that, a pod
   * without a worker may run.
   */
  get knowsAll(): boolean {
    return this.#knowsAll;
  }

  /** Receives a change of the desired pods. */
  handle(change: PodChange): void {
    if (!this.#afterListing.holds(change, change.op === "add")) return this.#take(change);
    const { effects, checkpoint } = this.#deps;
    if (change.op !== "remove" && !isDeleted(change.pod)) return;
    // One after the other: a pod deleted and gone at the same time is written twice.
    this.#deletions = this.#deletions.then(() => keepDeletion(checkpoint, change.pod, effects.clock.now()));
  }

  /** True while pods arrive that are only known to be running: their resources are not free. */
  get isTakingUp(): boolean {
    return this.#afterListing.isBusy;
  }

  /** Desired pods without a worker yet. */
  waiting(): Pod[] {
    const pods = [...this.#afterListing.pods, ...this.#queue.pods];
    return pods.filter(({ metadata }) => this.#deps.workers.get(podUid(metadata.uid)) === undefined);
  }

  /** A pod has stopped, or the node changed: others may have room now. */
  roomMade(): void {
    this.killer.look();
    this.#queue.retry();
    this.#deps.allocations.retry({ code: "RoomMade", message: "a pod has stopped, or the node has changed" });
  }

  #take(change: PodChange): void {
    const { pod, cause } = change;
    if (this.#queue.update(change)) {
      const left: Cause = { code: "PodsRemoved", message: "a pod that waited for room is no longer desired" };
      if (change.op === "remove") this.#deps.allocations.retry(left);
      return;
    }
    if (change.op === "remove") {
      this.#deps.workers.remove(podUid(pod.metadata.uid), cause, change.graceSeconds);
      return;
    }
    const end = change.op === "add" ? this.#endBefore(change) : undefined;
    if (end !== undefined) {
      this.#pass(change, undefined);
      this.#deps.workers.terminate(podUid(pod.metadata.uid), end);
      return;
    }
    // A pod that already runs was admitted before: a restart of podwright must not stop it.
    const known = change.op === "update" || isDeleted(pod) || this.#mayRunOn(pod);
    if (known) this.#pass(change, undefined);
    else this.#queue.add(change);
  }

  /** Why the pod had ended before this run: it never runs again. */
  #endBefore({ pod, cause }: PodChange): Ending | undefined {
    const uid = podUid(pod.metadata.uid);
    const end = this.#endings.take(uid);
    const graceSeconds = gracePeriodSeconds(pod);
    if (this.#deps.hadEnded(uid)) {
      const ended: Cause = { code: "PodHadEnded", message: "the pod had ended before", because: cause };
      return unwanted(ended, graceSeconds);
    }
    // Beside one that is still stopping it is another instance of the pod.
    return end && this.#deps.workers.get(uid) === undefined ? resumed(end, cause, graceSeconds) : undefined;
  }

  #pass({ pod, cause }: PodChange, rejection: Rejection | undefined): void {
    const { workers } = this.#deps;
    // A rejected pod holds nothing, and is allocated its request of that time if it is ever admitted.
    if (rejection === undefined) this.#deps.admission.reserve(pod, cause);
    workers.update(pod, cause);
    if (isDeleted(pod)) {
      const deleted: Cause = { code: "PodDeleted", message: "the pod is being deleted", because: cause };
      workers.terminate(podUid(pod.metadata.uid), unwanted(deleted, gracePeriodSeconds(pod)));
    }
    if (rejection === undefined) return;
    const entry = this.#deps.effects.journal.record({
      kind: "decision",
      what: rejection.reason,
      message: rejection.message,
      pod: podRef(pod),
      cause,
    });
    workers.terminate(podUid(pod.metadata.uid), refused(rejection, entry));
  }

  /** Whether the pod runs, as far as known, and no source has delivered it yet. */
  #isUnclaimed(uid: PodUid): boolean {
    const { cache, pleg, workers } = this.#deps;
    if (!pleg.isListed(uid) || workers.get(uid) !== undefined || this.#endings.has(uid)) return false;
    const { sandboxes } = cache.get(uid).status;
    return sandboxes.length === 0 || sandboxes.some(({ ready }) => ready);
  }

  /** Dispatches PLEG's events and does housekeeping until the signal aborts. */
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
        this.#deps.effects.log.warn("housekeeping failed", { error: errorMessage(error) });
      }
      this.killer.look();
      // Some of those that wait for unclaimed pods may pass by now.
      if (!this.#knowsAll) this.#queue.retry();
      const { effects, housekeepingPeriodMs } = this.#deps;
      // Soon, until all pods of the runtime are known: orphans are shown and stopped without delay.
      const pauseMs = this.#knowsAll ? housekeepingPeriodMs : Math.min(housekeepingPeriodMs, firstLookMs);
      await effects.clock.sleep("housekeeping", pauseMs, signal).catch(() => {});
    }
  }

  /** One search for orphaned pods: in the runtime, on disk, in the cgroup tree. */
  async #housekeeping(signal: AbortSignal): Promise<void> {
    const { pleg, cache } = this.#deps;
    // Some desired pods have no worker yet.
    if (pleg.lastRelistMs === undefined || this.#deps.moreToCome() || this.#afterListing.isBusy) return;
    const allReady = this.#deps.sourcesReady();
    await this.#endOrphans(allReady);
    if (!allReady) return;
    if (!this.#knowsAll && pleg.listed.every((uid) => cache.has(uid))) {
      this.#knowsAll = true;
      this.#unclaimed.clear();
      this.#queue.retry();
      this.#tellTakenUp();
    }
    await this.removeLeftovers(signal);
  }

  /** Stops orphaned pods of the runtime, if every source that may have them has delivered. */
  async #endOrphans(allReady: boolean): Promise<void> {
    const { workers, cache, owns, checkpoint } = this.#deps;
    for (const uid of cache.uids()) {
      if (workers.get(uid) !== undefined) continue;
      const { status, error } = cache.get(uid);
      if (!allReady && !this.#isDisowned(status)) continue;
      if (status.sandboxes.length > 0 || status.containers.length > 0) {
        if (!(await owns(uid))) continue;
        const pod = await keptSpec(checkpoint.files, checkpoint.node, uid);
        const cause: Cause = { code: "OrphanedPod", message: "no source has this pod" };
        this.#endings.take(uid);
        workers.removeOrphan({ uid, name: status.name, namespace: status.namespace }, pod, cause);
      } else if (error === undefined) {
        cache.delete(uid);
      }
    }
  }

  /**
   * A static pod whose file or URL no longer has it. Without an API server it would hold the name of its successor for
   * as long as the outage lasts.
   */
  #isDisowned({ sandboxes }: PodStatus): boolean {
    const source = sandboxes[0]?.source;
    return (source === "file" || source === "http") && this.#deps.sourcesReady(source);
  }

  /** Removes leftovers of removed pods. A failure for one pod does not affect others. */
  async removeLeftovers(signal: AbortSignal): Promise<void> {
    const { workers, cache, pleg, leftovers, effects, observer } = this.#deps;
    let [found, failed] = [0, 0];
    for (const uid of await leftovers.podUids()) {
      const pod = podUid(uid);
      // A listed pod that could not be inspected yet may be running, on the volumes that are here.
      const known = workers.get(pod) !== undefined || cache.has(pod) || pleg.isListed(pod);
      if (known) continue;
      this.#endings.take(pod);
      found++;
      try {
        const isGone = await leftovers.remove(uid, signal);
        // Its volumes would go while it makes them.
        invariant("nothing is left over of a pod that is worked on", workers.get(pod) === undefined, () => uid);
        if (!isGone) failed++;
      } catch (error) {
        signal.throwIfAborted();
        failed++;
        effects.log.warn("cannot remove the leftovers of a pod", { uid, error: errorMessage(error) });
      }
    }
    observer?.leftoversSwept(found, failed);
  }

  /** Records what an earlier run left running. */
  #tellTakenUp(): void {
    const { cache, workers, effects } = this.#deps;
    const found = takenUp(cache, (uid) => workers.get(uid)?.forgotten === false);
    if (found === undefined) return;
    effects.log.info("took over running pods", { ...found });
    effects.journal.record({ kind: "note", what: "PodsTakenUp", message: takenUpText(found) });
  }

  /**
   * The runtime has it: it was admitted in this or an earlier run. Its host ports may belong to another pod by now,
   * admitted while this one was an orphan.
   */
  #mayRunOn(pod: Pod): boolean {
    return this.#deps.pleg.isListed(podUid(pod.metadata.uid)) && !this.#queue.lost(pod, "NodePorts");
  }
}

/** The API server deletes it: it must stop and never run again. */
function isDeleted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}
