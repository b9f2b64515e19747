import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import { resizeMessage } from "./resize-summary.ts";
import { byUrgency, judgeResize, overcommitted, type PendingReason, type ResizeNode } from "./resize-admission.ts";
import type { PodResources } from "./resource-checkpoint.ts";
import { resourcesOf, sameResources, withResources } from "./resizable.ts";
import type { ResourceRecord } from "./resource-record.ts";

/** Upstream's: the first look at resizes that wait, and each later one. */
const initialRetryMs = 30_000;
const retryMs = 3 * 60_000;

export interface AllocationDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  /** What each pod was granted (`allocated_pods_state`). */
  readonly allocated: ResourceRecord;
  /** What each pod's running containers have by now (`actuated_pods_state`); its writer is who starts and resizes them. */
  readonly actuated: ResourceRecord;
  readonly node: ResizeNode;
}

/** What the node's pods are to whoever shares out its resources. */
export interface PodsToAllocate {
  /** Pods that hold resources of the node, or get them next, with what they were granted or let in with. */
  readonly activePods: () => readonly Pod[];
  /** False for a pod that neither a source nor the runtime has. */
  readonly known: (uid: PodUid) => boolean;
  /** True for a pod that is being stopped or has ended: it gets nothing else any more. */
  readonly isOver: (uid: PodUid) => boolean;
  /** False until every source has said what it wants: before, nobody knows what the node has to hold. */
  readonly ready: () => boolean;
  /** The pod was granted other resources, or waits for another reason than before. */
  readonly changed: (uid: PodUid, cause: Cause) => void;
}

const unconnected: PodsToAllocate = {
  activePods: () => [],
  known: () => true,
  isOver: () => false,
  ready: () => false,
  changed: () => {},
};

/** A resize that was granted and has to be carried out. */
export interface GrantedResize {
  readonly cause: Cause;
  /** Of the pod's spec that asked for it; undefined for a static pod. */
  readonly generation: number | undefined;
}

interface Waiting {
  pod: Pod;
  readonly cause: Cause;
  sinceMs: number | undefined;
  pending: PendingReason | undefined;
}

/**
 * Decides which resources each pod has (KEP-1287): those it was first seen with, until a change that its manifest asks
 * for is granted. What is granted survives a restart. A change that has no room now waits and is judged again when
 * something leaves, shrinks or is added, and now and then.
 */
export class AllocationManager {
  readonly #deps: AllocationDependencies;
  #pods: PodsToAllocate = unconnected;
  readonly #waiting = new Map<PodUid, Waiting>();
  readonly #granted = new Map<PodUid, GrantedResize>();
  /** Until the record is read, what is wanted waits. */
  #early: { readonly pod: Pod; readonly cause: Cause }[] | undefined = [];
  #retryAtMs: number;
  /** Pods as they were last given out, by the pod that was asked for: one object as long as nothing of it changes. */
  readonly #allocatedPods = new WeakMap<Pod, { readonly resources: PodResources | undefined; readonly pod: Pod }>();

  constructor(deps: AllocationDependencies) {
    this.#deps = deps;
    this.#retryAtMs = deps.clock.monotonic() + initialRetryMs;
  }

  /** To be called once, before anything else. */
  connect(pods: PodsToAllocate): void {
    this.#pods = pods;
  }

  /** Reads the records of earlier runs. To be called once, before any pod is synced. */
  async load(): Promise<void> {
    await Promise.all([this.#deps.allocated.load(), this.#deps.actuated.load()]);
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const { pod, cause } of early) this.wanted(pod, cause);
  }

  /** A pod is wanted, or its manifest has changed. */
  wanted(pod: Pod, cause: Cause): void {
    if (this.#early !== undefined) {
      this.#early.push({ pod, cause });
      return;
    }
    const { allocated } = this.#deps;
    const { uid } = pod.metadata;
    if (allocated.get(uid) === undefined) {
      // One that was refused holds nothing, whatever it asks for by now.
      if (this.#pods.isOver(uid)) return;
      allocated.set(uid, resourcesOf(pod));
      void allocated.saved();
      return;
    }
    const waiting = this.#waiting.get(uid);
    if (sameResources(this.allocatedPod(pod), pod)) {
      if (waiting === undefined) return;
      this.#waiting.delete(uid);
      this.#pods.changed(uid, cause);
      return;
    }
    if (waiting !== undefined && sameResources(waiting.pod, pod)) waiting.pod = pod;
    else this.#waiting.set(uid, { pod, cause, sinceMs: undefined, pending: waiting?.pending });
    this.retry(cause);
  }

  /** The pod with the resources that it was granted: the same object until either changes. */
  allocatedPod(pod: Pod): Pod {
    const resources = this.#deps.allocated.get(pod.metadata.uid);
    const known = this.#allocatedPods.get(pod);
    if (known !== undefined && known.resources === resources) return known.pod;
    const allocated = { resources, pod: withResources(pod, resources) };
    this.#allocatedPods.set(pod, allocated);
    return allocated.pod;
  }

  /** Why the resources that the pod's manifest asks for are not granted; undefined: they are. */
  pending(uid: PodUid): PendingReason | undefined {
    return this.#waiting.get(uid)?.pending;
  }

  /** The resize granted last in this run. */
  granted(uid: PodUid): GrantedResize | undefined {
    return this.#granted.get(uid);
  }

  /** Resolves when what was granted so far is on disk, or can't be written. What has been carried out follows. */
  async saved(): Promise<void> {
    const { allocated, actuated } = this.#deps;
    // Who carried it out has tried; a disk is full for a while only.
    void actuated.saved();
    await allocated.saved();
  }

  /** The pod is gone: what it held is free. */
  remove(uid: PodUid): void {
    this.#waiting.delete(uid);
    this.#granted.delete(uid);
    this.#forget(uid);
    this.retry({ code: "PodsRemoved", message: "a pod left the node" });
  }

  /** Judges every resize that waits. */
  retry(cause: Cause): void {
    if (this.#waiting.size === 0 || !this.#pods.ready()) return;
    this.#retryAtMs = this.#deps.clock.monotonic() + retryMs;
    const waiting = [...this.#waiting].map(([uid, entry]) => {
      return { uid, entry, wanted: entry.pod, granted: this.allocatedPod(entry.pod), sinceMs: entry.sinceMs };
    });
    for (const { uid, entry, granted } of waiting.toSorted(byUrgency)) this.#judge(uid, entry, granted, cause);
  }

  /** Judges again what waits, now and then, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const delayMs = Math.max(1000, this.#retryAtMs - clock.monotonic());
      await clock.sleep("pending resizes", delayMs, signal).catch(() => {});
      if (signal.aborted || clock.monotonic() < this.#retryAtMs) continue;
      this.#retryAtMs = clock.monotonic() + (this.#pods.ready() ? retryMs : initialRetryMs);
      if (this.#pods.ready()) this.#forgetOrphans();
      this.retry({ code: "ResizeRetry", message: "pending resizes are due for a retry" });
    }
  }

  /** Pods that left while podwright was not there. */
  #forgetOrphans(): void {
    const { allocated, actuated } = this.#deps;
    for (const uid of [...allocated.uids(), ...actuated.uids()]) if (!this.#pods.known(uid)) this.#forget(uid);
  }

  #forget(uid: PodUid): void {
    this.#deps.allocated.remove(uid);
    this.#deps.actuated.remove(uid);
  }

  #judge(uid: PodUid, entry: Waiting, granted: Pod, trigger: Cause): void {
    const { clock, allocated, node } = this.#deps;
    const { activePods, isOver, changed } = this.#pods;
    if (isOver(uid)) {
      this.#waiting.delete(uid);
      return;
    }
    const others = activePods().filter((pod) => pod.metadata.uid !== uid);
    const pending = judgeResize(entry.pod, granted, others, node);
    if (pending === undefined) {
      this.#waiting.delete(uid);
      allocated.set(uid, resourcesOf(entry.pod));
      const over = overcommitted(entry.pod, granted, activePods(), node);
      // Judged by what all others had at this moment.
      invariant("what is granted fits the node", over === undefined, () => `${uid}: ${over}`);
      const message = "the manifest's resources are allocated";
      // One that had to wait says what made it be judged again.
      const data = entry.pending && { trigger: trigger.code };
      const cause = this.#record("ResizeStarted", entry.pod, message, entry.cause, data);
      this.#granted.set(uid, { cause, generation: entry.pod.metadata.generation });
      changed(uid, cause);
      return;
    }
    const before = entry.pending;
    entry.pending = pending;
    entry.sinceMs ??= clock.monotonic();
    if (before?.reason === pending.reason && before.message === pending.message) return;
    const what = pending.reason === "Infeasible" ? "ResizeInfeasible" : "ResizeDeferred";
    const cause = before === undefined ? entry.cause : trigger;
    changed(uid, this.#record(what, entry.pod, pending.message, cause));
  }

  #record(
    what: "ResizeStarted" | "ResizeDeferred" | "ResizeInfeasible",
    pod: Pod,
    message: string,
    cause: Cause,
    data?: Readonly<Record<string, string>>,
  ): Cause {
    const { namespace, name, uid } = pod.metadata;
    const ref: PodRef = { namespace, name, uid };
    const error = what === "ResizeStarted" ? undefined : message;
    const event = resizeMessage(what, pod, pod.metadata.generation, error);
    const entry = this.#deps.journal.record({
      kind: "decision",
      what,
      message,
      pod: ref,
      cause,
      data: { ...data, eventMessage: event },
    });
    return { code: what, message, entry, because: cause };
  }
}
