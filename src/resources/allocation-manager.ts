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

/** Upstream's intervals until pending resizes are first retried, and later. */
const initialRetryMs = 30_000;
const retryMs = 3 * 60_000;

export interface AllocationDependencies {
  readonly clock: Clock;
  readonly journal: Recorder;
  /** Allocations (`allocated_pods_state`). */
  readonly allocated: ResourceRecord;
  /** Resources of running containers (`actuated_pods_state`), written when containers are started and resized. */
  readonly actuated: ResourceRecord;
  readonly node: ResizeNode;
}

/** The node's pods, for allocations. */
export interface PodsToAllocate {
  /** Pods that hold resources or are about to, with their allocations. */
  readonly activePods: () => readonly Pod[];
  /** Whether a source or the runtime has the pod. */
  readonly known: (uid: PodUid) => boolean;
  /** Whether the pod is stopping or has ended: it is granted nothing more. */
  readonly isOver: (uid: PodUid) => boolean;
  /** False until every source has reported its pods: before, the node's total is unknown. */
  readonly ready: () => boolean;
  /** Why the node does not allocate the pod's request beside the others now; undefined: no objection. */
  readonly objection: (wanted: Pod, granted: Pod, others: readonly Pod[]) => string | undefined;
  /** Why its last status says that it is pending, also of an earlier run; undefined: it does not, or of another spec. */
  readonly lastTold: (pod: Pod) => PendingReason | undefined;
  /** The pod's allocation changed, or the reason for its pending resize. */
  readonly changed: (uid: PodUid, cause: Cause) => void;
}

const unconnected: PodsToAllocate = {
  activePods: () => [],
  known: () => true,
  isOver: () => false,
  ready: () => false,
  objection: () => undefined,
  lastTold: () => undefined,
  changed: () => {},
};

/** A granted resize, to be actuated. */
export interface GrantedResize {
  readonly cause: Cause;
  /** Generation of the pod's spec with the request; undefined for a static pod. */
  readonly generation: number | undefined;
}

interface Waiting {
  pod: Pod;
  readonly cause: Cause;
  sinceMs: number | undefined;
  /** Until the first judgment that of an earlier run. */
  pending: PendingReason | undefined;
}

/**
 * Allocates resources to pods (KEP-1287): those of their first spec, until a requested resize is granted. Allocations
 * survive a restart. A resize to which the node objects stays pending, and is retried periodically and whenever a pod
 * leaves, shrinks or is added.
 */
export class AllocationManager {
  readonly #deps: AllocationDependencies;
  #pods: PodsToAllocate = unconnected;
  readonly #waiting = new Map<PodUid, Waiting>();
  readonly #granted = new Map<PodUid, GrantedResize>();
  /** Pods of the record that was read, until their allocation is first asked for. */
  readonly #recorded = new Set<PodUid>();
  /** Pods reported before the record is read. */
  #early: { readonly pod: Pod; readonly cause: Cause }[] | undefined = [];
  #retryAtMs: number;
  /** The last allocated pod by its spec's pod: the same object while nothing changes. */
  readonly #allocatedPods = new WeakMap<Pod, { readonly resources: PodResources | undefined; readonly pod: Pod }>();

  constructor(deps: AllocationDependencies) {
    this.#deps = deps;
    this.#retryAtMs = deps.clock.monotonic() + initialRetryMs;
  }

  /** Called once, first. */
  connect(pods: PodsToAllocate): void {
    this.#pods = pods;
  }

  /** Reads the records of earlier runs. Called once, before any pod is synced. */
  async load(): Promise<void> {
    const { allocated, actuated } = this.#deps;
    await Promise.all([allocated.load(), actuated.load()]);
    for (const uid of allocated.uids()) this.#recorded.add(uid);
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const { pod, cause } of early) this.wanted(pod, cause);
  }

  /** A source added the pod or changed its manifest. */
  wanted(pod: Pod, cause: Cause): void {
    if (this.#early !== undefined) {
      this.#early.push({ pod, cause });
      return;
    }
    const { allocated } = this.#deps;
    const { uid } = pod.metadata;
    if (allocated.get(uid) === undefined) {
      // A rejected pod holds nothing, whatever it requests now.
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
    else {
      // After a restart it stays pending until it is judged again, and the same judgment is no news.
      const pending = waiting === undefined ? this.#pods.lastTold(pod) : waiting.pending;
      this.#waiting.set(uid, { pod, cause, sinceMs: undefined, pending });
    }
    this.retry(cause);
  }

  /** The pod with its allocation: the same object until either changes. */
  allocatedPod(pod: Pod): Pod {
    if (this.#recorded.delete(pod.metadata.uid)) this.#complete(pod);
    const resources = this.#deps.allocated.get(pod.metadata.uid);
    const known = this.#allocatedPods.get(pod);
    if (known !== undefined && known.resources === resources) return known.pod;
    const allocated = { resources, pod: withResources(pod, resources) };
    this.#allocatedPods.set(pod, allocated);
    return allocated.pod;
  }

  /** Why the manifest's resources are not granted; undefined: they are. */
  pending(uid: PodUid): PendingReason | undefined {
    return this.#waiting.get(uid)?.pending;
  }

  /** The last resize granted in this run. */
  granted(uid: PodUid): GrantedResize | undefined {
    return this.#granted.get(uid);
  }

  /** Resolves when all allocations are on disk, or cannot be written. The record of actuated resources follows. */
  async saved(): Promise<void> {
    const { allocated, actuated } = this.#deps;
    // Their writer has tried before; a full disk is temporary.
    void actuated.saved();
    await allocated.saved();
  }

  /** The pod was removed and releases its resources. */
  remove(uid: PodUid): void {
    this.#waiting.delete(uid);
    this.#granted.delete(uid);
    this.#forget(uid);
    this.retry({ code: "PodsRemoved", message: "a pod left the node" });
  }

  /** Retries every pending resize. */
  retry(cause: Cause): void {
    if (this.#waiting.size === 0 || !this.#pods.ready()) return;
    this.#retryAtMs = this.#deps.clock.monotonic() + retryMs;
    const waiting = [...this.#waiting].map(([uid, entry]) => {
      return { uid, entry, wanted: entry.pod, granted: this.allocatedPod(entry.pod), sinceMs: entry.sinceMs };
    });
    for (const { uid, entry, granted } of waiting.toSorted(byUrgency)) this.#judge(uid, entry, granted, cause);
  }

  /** Retries pending resizes periodically until the signal aborts. */
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

  /** Pods that were removed while podwright was not running. */
  #forgetOrphans(): void {
    const { allocated, actuated } = this.#deps;
    for (const uid of [...allocated.uids(), ...actuated.uids()]) if (!this.#pods.known(uid)) this.#forget(uid);
  }

  /**
   * Go kubelets before 1.36 record no pod-level resources, and cannot resize them: the pod has had those of its spec all
   * along. Taking them away would change its QoS class, and with that its cgroup.
   */
  #complete(pod: Pod): void {
    const { allocated, actuated } = this.#deps;
    const { metadata, spec } = pod;
    // They may be what an earlier run has not granted.
    if (spec.resources === undefined || this.#pods.lastTold(pod) !== undefined) return;
    for (const record of [allocated, actuated]) {
      const known = record.get(metadata.uid);
      if (known !== undefined && known.pod === undefined) record.setPart(metadata.uid, undefined, spec.resources);
    }
    void allocated.saved();
  }

  #forget(uid: PodUid): void {
    this.#recorded.delete(uid);
    this.#deps.allocated.remove(uid);
    this.#deps.actuated.remove(uid);
  }

  #judge(uid: PodUid, entry: Waiting, granted: Pod, trigger: Cause): void {
    const { clock, allocated, node } = this.#deps;
    const { activePods, isOver, changed, objection } = this.#pods;
    if (isOver(uid)) {
      this.#waiting.delete(uid);
      return;
    }
    const others = activePods().filter((pod) => pod.metadata.uid !== uid);
    const pending = judgeResize(entry.pod, granted, node, () => objection(entry.pod, granted, others));
    if (pending === undefined) {
      this.#waiting.delete(uid);
      allocated.set(uid, resourcesOf(entry.pod));
      const over = overcommitted(entry.pod, granted, activePods(), node);
      // The grant was checked against all other present allocations.
      invariant("granted resizes fit the node", over === undefined, () => `${uid}: ${over}`);
      const message = "the requested resources are allocated";
      // A deferred resize names the reason for its retry.
      const data = entry.pending?.reason === "Deferred" ? { trigger: trigger.code } : undefined;
      const cause = this.#record("ResizeStarted", entry.pod, message, entry.cause, data);
      this.#granted.set(uid, { cause, generation: entry.pod.metadata.generation });
      changed(uid, cause);
      return;
    }
    const { pending: before, sinceMs } = entry;
    entry.pending = pending;
    entry.sinceMs ??= clock.monotonic();
    if (before?.reason === pending.reason && before.message === pending.message) return;
    // How much is in use changes with every other pod, which is no news.
    if (before?.reason === pending.reason && sinceMs !== undefined) return changed(uid, trigger);
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
