import type { Pod } from "../api/pod.ts";
import { errorMessage } from "../base/errors.ts";
import { type PodUid, podUid } from "../base/ids.ts";
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
  /** Where pods' checkpoints are kept. */
  readonly checkpoint: CheckpointDependencies;
  readonly node: Pick<NodeContext, "resources">;
  readonly observer?: Observer | undefined;
  readonly pleg: Pleg;
  readonly cache: PodCache;
  readonly workers: PodWorkers;
  readonly allocations: Pick<AllocationManager, "allocatedPod" | "retry">;
  /** True once every source, or the one that is named, has said what it wants: before, nothing is known to be unwanted. */
  readonly sourcesReady: (source?: string) => boolean;
  /** Whether changes are on their way here of which a source has said already. */
  readonly moreToCome: () => boolean;
  /** Which of the runtime's pods are this node's to remove. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** Pods that left something on disk or in the cgroup tree, and how to remove that. */
  readonly leftovers: Leftovers;
  readonly housekeepingPeriodMs: number;
  readonly admission: AdmissionChain;
  /** Undefined: pods are given to this node by hand. */
  readonly cluster: Pick<ClusterHooks, "place" | "refreshPlace"> | undefined;
  /** Whether the API server says of the pod, of which this life has said nothing yet, that it is over. */
  readonly hadEnded: (uid: PodUid) => boolean;
}

/** What pods leave behind outside of the runtime. */
export interface Leftovers {
  podUids(): Promise<ReadonlySet<string>>;
  /** False: something is left that is not podwright's to remove. */
  remove(uid: string, signal: AbortSignal): Promise<boolean>;
}

/** Ms between two looks for pods that nobody wants, as long as those that the runtime has are not all known. */
const firstLookMs = 200;

/**
 * Brings together what is wanted (sources) and what happens (PLEG) in the pod workers, and looks for pods that are there
 * although nobody wants them. Nothing here waits for a pod.
 */
export class SyncLoop {
  readonly #deps: SyncLoopDependencies;
  readonly #afterListing: AfterListing;
  readonly #queue: AdmissionQueue;
  /** For whoever ends pods that are still wanted. */
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

  /** Reads what earlier lives left. To be called once, before the runtime is looked at. */
  async load(): Promise<void> {
    await this.#endings.load();
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
    if (!this.#afterListing.holds(change, change.op === "add")) return this.#take(change);
    const { effects, checkpoint } = this.#deps;
    if (change.op !== "remove" && !isDeleted(change.pod)) return;
    // One after the other: a pod that is deleted and gone at once is written twice.
    this.#deletions = this.#deletions.then(() => keepDeletion(checkpoint, change.pod, effects.clock.now()));
  }

  /** True while pods come of which nothing is known yet but that they run: what they hold is not free. */
  get isTakingUp(): boolean {
    return this.#afterListing.isBusy;
  }

  /** Pods that are wanted and have no worker yet. */
  waiting(): Pod[] {
    const pods = [...this.#afterListing.pods, ...this.#queue.pods];
    return pods.filter(({ metadata }) => this.#deps.workers.get(podUid(metadata.uid)) === undefined);
  }

  /** A pod has stopped, or the node has changed: others may have room now. */
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
    // A pod that runs already was admitted before: a restart of podwright must not take it down again.
    const known = change.op === "update" || isDeleted(pod) || this.#mayRunOn(pod);
    if (known) this.#pass(change, undefined);
    else this.#queue.add(change);
  }

  /** Why the pod was over before this life of podwright knew of it: it never runs again. */
  #endBefore({ pod, cause }: PodChange): Ending | undefined {
    const uid = podUid(pod.metadata.uid);
    const end = this.#endings.take(uid);
    const graceSeconds = gracePeriodSeconds(pod);
    if (this.#deps.hadEnded(uid)) {
      const ended: Cause = { code: "PodHadEnded", message: "the pod had ended before", because: cause };
      return unwanted(ended, graceSeconds);
    }
    // Beside one that is still ending it is another life of the pod.
    return end && this.#deps.workers.get(uid) === undefined ? resumed(end, cause, graceSeconds) : undefined;
  }

  #pass({ pod, cause }: PodChange, rejection: Rejection | undefined): void {
    const { workers } = this.#deps;
    // One that is refused holds nothing, and is granted what it asks for by then, should it ever be let in.
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

  /** Whether the pod runs, as far as that is known, and no source has named it yet. */
  #isUnclaimed(uid: PodUid): boolean {
    const { cache, pleg, workers } = this.#deps;
    if (!pleg.isListed(uid) || workers.get(uid) !== undefined || this.#endings.has(uid)) return false;
    const { sandboxes } = cache.get(uid).status;
    return sandboxes.length === 0 || sandboxes.some(({ ready }) => ready);
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
        this.#deps.effects.log.warn("housekeeping failed", { error: errorMessage(error) });
      }
      this.killer.look();
      // Of what waits for pods that were not heard of: some are by now.
      if (!this.#knowsAll) this.#queue.retry();
      const { effects, housekeepingPeriodMs } = this.#deps;
      // Until all pods of the runtime are known, soon: what an earlier life left is shown and stopped at once.
      const pauseMs = this.#knowsAll ? housekeepingPeriodMs : Math.min(housekeepingPeriodMs, firstLookMs);
      await effects.clock.sleep("housekeeping", pauseMs, signal).catch(() => {});
    }
  }

  /** One look for pods that nobody wants: in the runtime, on disk, in the cgroup tree. */
  async #housekeeping(signal: AbortSignal): Promise<void> {
    const { pleg, cache } = this.#deps;
    // Some of what is wanted has no worker yet.
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

  /** Stops pods of the runtime that no source wants, as far as those have spoken that may want them. */
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
   * A static pod whose file or URL gives it no more. With the API server away it would hold the name of the one that its
   * manifest gives now for as long as that lasts.
   */
  #isDisowned({ sandboxes }: PodStatus): boolean {
    const source = sandboxes[0]?.source;
    return (source === "file" || source === "http") && this.#deps.sourcesReady(source);
  }

  /** Removes what pods left that are gone. What can't be removed of one of them keeps no other's. */
  async removeLeftovers(signal: AbortSignal): Promise<void> {
    const { workers, cache, pleg, leftovers, effects, observer } = this.#deps;
    let [found, failed] = [0, 0];
    for (const uid of await leftovers.podUids()) {
      const pod = podUid(uid);
      // One that the runtime lists and that could not be inspected yet may run, on the volumes that are here.
      const known = workers.get(pod) !== undefined || cache.has(pod) || pleg.isListed(pod);
      if (known) continue;
      this.#endings.take(pod);
      found++;
      try {
        if (!(await leftovers.remove(uid, signal))) failed++;
      } catch (error) {
        signal.throwIfAborted();
        failed++;
        effects.log.warn("cannot remove the leftovers of a pod", { uid, error: errorMessage(error) });
      }
    }
    observer?.leftoversSwept(found, failed);
  }

  /** One line on what of an earlier life runs on. */
  #tellTakenUp(): void {
    const { cache, workers, effects } = this.#deps;
    const found = takenUp(cache, (uid) => workers.get(uid)?.forgotten === false);
    if (found === undefined) return;
    effects.log.info("took over running pods", { ...found });
    effects.journal.record({ kind: "note", what: "PodsTakenUp", message: takenUpText(found) });
  }

  /**
   * The runtime has something of it: it was admitted, in this life or an earlier one. Its host ports may be another
   * one's by now, that was let in while nobody wanted this one.
   */
  #mayRunOn(pod: Pod): boolean {
    return this.#deps.pleg.isListed(podUid(pod.metadata.uid)) && !this.#queue.lost(pod, "NodePorts");
  }
}

/** The API server was asked to delete it: it is to stop, and never to run again. */
function isDeleted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}
