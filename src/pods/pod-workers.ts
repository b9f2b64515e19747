import { fullName } from "../api/full-name.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { Emitter } from "../base/emitter.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { DeliveredEvent } from "../pleg/lifecycle-events.ts";
import type { Observation } from "../pleg/pod-cache.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { type ChangedObject, usesObject } from "../api/referenced-objects.ts";
import { invariant } from "../base/invariant.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import { type Ending, unwanted } from "./ending.ts";
import { PodWorker } from "./pod-worker.ts";
import type { WorkerDependencies, WorkerView } from "./worker-dependencies.ts";
import type { WorkerPlan } from "./worker-plan.ts";

/** Grace period for pods that only the runtime knows: upstream kills them with 1 s. */
const orphanGraceSeconds = 1;

/** A pod that returns under the UID of one that is still stopping: it starts when that one is finished. */
export interface ReturningPod {
  readonly pod: Pod;
  /** As admitted: any further request is a resize. */
  readonly letIn: Pod;
  readonly cause: Cause;
  /** It ends before it starts, e.g. because it was rejected. */
  readonly end?: Ending;
}

/** Receives the ends of pods. */
export interface WorkersListener {
  /** The pod has stopped: others may have room. May be called repeatedly. @param isWanted some source has it */
  stopped(isWanted: boolean): void;
  /** The pod has stopped and released its resources. May be called repeatedly. */
  released(uid: PodUid): void;
  /** The pod is gone from the node. */
  removed(uid: PodUid): void;
}

/**
 * One worker for each pod UID. Two pods of one full name never run at the same time: the later waits until the earlier
 * is finished, so a replaced manifest stops the old pod before the new one starts.
 */
export class PodWorkers {
  readonly #deps: WorkerDependencies;
  readonly #workers = new Map<PodUid, PodWorker>();
  /** By full name, oldest first: only the first of each works. */
  readonly #queues = new Map<string, PodWorker[]>();
  readonly #returning = new Map<PodUid, ReturningPod>();
  /** Of pods that no source had when they were found in the runtime. */
  readonly #orphans = new Set<PodUid>();
  /** Removed pods, with the last observation that may still show them. */
  readonly #removed = new Map<PodUid, Observation>();
  #listener: WorkersListener | undefined;
  readonly #removedPods = new Emitter<PodUid>();
  /** Pods that have ended and are still here. */
  readonly #ended = new Set<PodUid>();
  readonly #endedPods = new Emitter<PodUid>();
  #signal: AbortSignal | undefined;

  constructor(deps: WorkerDependencies) {
    this.#deps = deps;
  }

  /** To be called once, before the first pod is delivered. */
  connect(listener: WorkersListener): void {
    this.#listener = listener;
  }

  /** Calls back with each pod that is gone from the node, after all other listeners. */
  onRemoved(listener: (uid: PodUid) => void): void {
    this.#removedPods.on(listener);
  }

  /**
   * Calls back once with each pod that has ended and released its resources while some source may still have it, after
   * its last status, until disposed of. A rejected pod never began.
   */
  onEnded(listener: (uid: PodUid) => void): Disposable {
    return this.#endedPods.on(listener);
  }

  /** Runs the workers until the signal aborts; pods then stay as they are. */
  start(signal: AbortSignal): void {
    this.#signal = signal;
    this.#deps.pleg.onRecovered((cause) => {
      for (const worker of this.#workers.values()) worker.runtimeAnswers(cause);
    });
    for (const [queued] of this.#queues.values()) this.#run(queued);
  }

  get(uid: PodUid): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  has(uid: PodUid): boolean {
    return this.#workers.has(uid);
  }

  /** Whether the pod was removed in this run, and has not been inspected since. */
  isUnseenSinceRemoval(uid: PodUid): boolean {
    const removed = this.#removed.get(uid);
    if (removed === undefined) return false;
    const { error, observed } = this.#deps.cache.get(uid);
    // A look that failed shows what was seen before it.
    return error !== undefined || observed <= removed;
  }

  list(): PodWorker[] {
    return [...this.#workers.values()];
  }

  /** Whether the pod was found in the runtime when no source had it: no source has had this instance in this run. */
  isOrphan(uid: PodUid): boolean {
    return this.#orphans.has(uid);
  }

  /** The pod that returns under this UID once the one that is still stopping is finished. */
  returning(uid: PodUid): ReturningPod | undefined {
    return this.#returning.get(uid);
  }

  /**
   * Pods with their allocated resources, and those that return once their predecessor of the same UID is finished, with
   * the resources they were admitted with.
   */
  holding(): Pod[] {
    const back = [...this.#returning.values()].flatMap(({ letIn, end }) => (end === undefined ? [letIn] : []));
    const held = this.list().flatMap(({ state, pod }) =>
      pod !== undefined && (state.kind === "syncing" || state.kind === "terminating")
        ? [this.#deps.allocations.allocatedPod(pod)]
        : [],
    );
    const comesBack = new Set(back.map(({ metadata }) => metadata.uid));
    return [...held.filter(({ metadata }) => !comesBack.has(metadata.uid)), ...back];
  }

  /** What each worker would do at its next step; one that waits for its name does nothing. */
  async plans(): Promise<WorkerPlan[]> {
    const plan = async (worker: PodWorker): Promise<WorkerPlan> => {
      const first = this.#queues.get(fullName(worker.ref))?.[0];
      const own = await worker.plan();
      const isFirst = first === undefined || first === worker || worker.forgotten;
      return isFirst ? own : { ...own, behind: first.uid, actions: undefined };
    };
    return await Promise.all(this.list().map(plan));
  }

  /** The pod is desired as given. */
  update(pod: Pod, cause: Cause): void {
    const uid = pod.metadata.uid;
    const worker = this.#workers.get(uid);
    if (worker === undefined) {
      this.#add(this.#workerOf(pod, cause));
    } else if (worker.forgotten) {
      this.#returning.set(uid, { letIn: pod, ...this.#returning.get(uid), pod, cause });
    } else {
      worker.update(pod, cause);
    }
  }

  /** Stops the pod for good, though a source has it. Of two with one UID, the one that returns is meant. */
  terminate(uid: PodUid, ending: Ending): void {
    const back = this.#returning.get(uid);
    if (back === undefined) this.#workers.get(uid)?.terminate(ending);
    else if (back.end === undefined) this.#returning.set(uid, { ...back, end: ending });
  }

  /** No source has the pod any more: it is stopped with its own grace period, or a shorter one, and removed. */
  remove(uid: PodUid, cause: Cause, graceSeconds?: number): void {
    this.#returning.delete(uid);
    const worker = this.#workers.get(uid);
    if (worker === undefined) return;
    worker.terminate(unwanted(cause, graceSeconds ?? graceOf(worker.pod)));
    worker.forget(cause);
    this.#dropUnstarted(worker, cause);
  }

  /**
   * An orphaned pod of the runtime.
   * @param pod undefined: only the runtime knows it
   */
  removeOrphan(ref: PodRef, pod: Pod | undefined, cause: Cause): void {
    if (this.#workers.has(ref.uid)) return;
    // A pod that was not listed may run, and may be desired.
    invariant("an orphan was seen in the runtime", this.#deps.cache.has(ref.uid), () => ref.uid);
    const worker = this.#newWorker(ref, pod, cause);
    worker.terminate(unwanted(cause, graceOf(pod)));
    worker.forget(cause);
    // It does not wait for a pod of its name: the desired one waits for it.
    this.#workers.set(worker.uid, worker);
    this.#orphans.add(worker.uid);
    this.#run(worker);
  }

  /** Something about the pod changed elsewhere: sync it. */
  wake(uid: PodUid, cause: Cause): void {
    this.#workers.get(uid)?.wake(cause);
  }

  /** A user requests that everything in back-off is retried at once. */
  retryNow(uid: PodUid, cause: Cause): void {
    this.#workers.get(uid)?.retryNow(cause);
  }

  /** ConfigMaps or Secrets were added, changed or removed: sync the pods that refer to them. */
  objectsChanged(objects: readonly ChangedObject[], cause: Cause): void {
    for (const worker of this.#workers.values()) {
      const { pod } = worker;
      if (pod !== undefined && objects.some((object) => usesObject(pod, object))) worker.objectsChanged(cause);
    }
  }

  /** Pods without a sandbox because of the network can be retried. */
  networkUp(cause: Cause): void {
    for (const worker of this.#workers.values()) {
      const { sandboxes } = this.#deps.cache.get(worker.uid).status;
      if (!sandboxes.some(({ ready }) => ready)) worker.objectsChanged(cause);
    }
  }

  /** Passes an event on to the pod's worker; false when the pod has none. */
  observed(event: DeliveredEvent): boolean {
    const worker = this.#workers.get(event.uid);
    worker?.observed(event);
    return worker !== undefined;
  }

  #add(worker: PodWorker): void {
    // A UID that is desired again waits until its worker has finished.
    invariant("a pod has one worker", !this.#workers.has(worker.uid), () => worker.uid);
    this.#workers.set(worker.uid, worker);
    const name = fullName(worker.ref);
    const queue = this.#queues.get(name);
    if (queue === undefined) {
      this.#queues.set(name, [worker]);
      this.#run(worker);
    } else {
      queue.push(worker);
      worker.queuedBehind(queue[0]?.uid ?? worker.uid);
    }
  }

  /** A pod removed while it waited for its name has nothing to stop, unless it ran in an earlier run. */
  #dropUnstarted(worker: PodWorker, cause: Cause): void {
    const queue = this.#queues.get(fullName(worker.ref));
    if (queue === undefined || queue[0] === worker) return;
    if (this.#deps.cache.get(worker.uid).status.sandboxes.length > 0) return;
    queue.splice(queue.indexOf(worker), 1);
    this.#workers.delete(worker.uid);
    const message = "the pod is no longer desired and never started";
    this.#deps.effects.journal.record({ kind: "decision", what: "PodFinished", message, pod: worker.ref, cause });
    this.#tellRemoved(worker.uid);
  }

  #run(worker: PodWorker | undefined): void {
    const signal = this.#signal;
    if (worker === undefined || signal === undefined || signal.aborted) return;
    const queue = this.#queues.get(fullName(worker.ref)) ?? [];
    // Log paths and addresses are shared.
    const isItsTurn = queue[0] === worker || !queue.includes(worker);
    invariant("one worker per pod name is active", isItsTurn, () => `${worker.uid} before ${queue[0]?.uid}`);
    void this.#runToEnd(worker, signal);
  }

  async #runToEnd(worker: PodWorker, signal: AbortSignal): Promise<void> {
    try {
      await worker.run(signal);
    } catch (error) {
      // A defect: this pod is no longer managed, the others are.
      this.#deps.effects.log.error("pod worker failed", { ...worker.ref, error: errorMessage(error) });
      return;
    }
    if (worker.state.kind === "finished") this.#finished(worker);
  }

  #finished(worker: PodWorker): void {
    const name = fullName(worker.ref);
    // Its place stays taken until it has finished.
    invariant("a worker that finishes is known", this.#workers.get(worker.uid) === worker, () => worker.uid);
    const wasFirst = this.#queues.get(name)?.[0] === worker;
    const rest = (this.#queues.get(name) ?? []).filter((other) => other !== worker);
    this.#workers.delete(worker.uid);
    this.#orphans.delete(worker.uid);
    this.#noteRemoved(worker.uid);
    if (rest.length === 0) this.#queues.delete(name);
    else this.#queues.set(name, rest);
    this.#tellRemoved(worker.uid);
    if (wasFirst) this.#run(rest[0]);
    const back = this.#returning.get(worker.uid);
    this.#returning.delete(worker.uid);
    if (back === undefined) return;
    if (back.end === undefined) this.#deps.observer?.podReturned(isStaticPod(back.pod));
    const next = this.#workerOf(back.pod, back.cause);
    // The predecessor's allocation is forgotten with it.
    if (back.end === undefined) this.#deps.reserve(back.letIn, back.cause);
    else next.terminate(back.end);
    this.#add(next);
    // A resize that arrived meanwhile is judged now.
    if (back.pod !== back.letIn && back.end === undefined) this.#deps.reserve(back.pod, back.cause);
  }

  /** A pod that returns is judged by observations after its predecessor's removal. */
  #workerOf(pod: Pod, cause: Cause): PodWorker {
    const uid = pod.metadata.uid;
    const removed = this.#removed.get(uid);
    if (removed !== undefined) this.#deps.pleg.requestInspect(uid);
    return this.#newWorker(podRef(pod), pod, cause, removed);
  }

  #newWorker(ref: PodRef, pod: Pod | undefined, cause: Cause, after?: Observation): PodWorker {
    const comesBack = (uid: PodUid): boolean => this.#returning.has(uid);
    const publish = (view: WorkerView, why: Cause): void => this.#publish(view, why);
    return new PodWorker({ ...this.#deps, comesBack, publish }, ref, pod, cause, after);
  }

  #publish(view: WorkerView, cause: Cause): void {
    this.#deps.publish(view, cause);
    const { ref, state } = view;
    if (state.kind !== "terminated") return;
    this.#listener?.stopped(this.#workers.get(ref.uid)?.forgotten !== true);
    if (!state.released) return;
    this.#listener?.released(ref.uid);
    if (state.ending.outcome === "refused" || this.#ended.has(ref.uid)) return;
    this.#ended.add(ref.uid);
    this.#endedPods.emit(ref.uid);
  }

  #tellRemoved(uid: PodUid): void {
    this.#ended.delete(uid);
    this.#listener?.removed(uid);
    this.#removedPods.emit(uid);
  }

  #noteRemoved(uid: PodUid): void {
    for (const other of this.#removed.keys()) if (!this.isUnseenSinceRemoval(other)) this.#removed.delete(other);
    this.#removed.set(uid, this.#deps.pleg.now());
  }
}

function graceOf(pod: Pod | undefined): number {
  return pod === undefined ? orphanGraceSeconds : gracePeriodSeconds(pod);
}
