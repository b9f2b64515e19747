import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import { podUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Cause, JournalInput, Recorder } from "../journal/entry.ts";
import type { NameOf } from "../journal/vocabulary.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { Admission, Holder } from "./admission.ts";
import type { PodChange } from "./pod-change.ts";
import type { PodKiller } from "./pod-killer.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { PodWorkers } from "./pod-workers.ts";
import { mayPreempt, preempted, preempting } from "./preemption.ts";
import type { Rejection } from "./rejection.ts";

export interface AdmissionQueueDependencies {
  readonly workers: Pick<PodWorkers, "get" | "list" | "returning">;
  /** Ends pods that make room. */
  readonly killer: Pick<PodKiller, "kill">;
  /**
   * Running pods that no source has delivered yet in this run. They keep their resources, or are about to be stopped.
   */
  readonly unclaimed: () => readonly Pod[];
  readonly journal: Recorder;
  /** The pod with its allocated resources. */
  readonly granted: (pod: Pod) => Pod;
  readonly decide: (pod: Pod, holders: readonly Holder[]) => Admission;
  /** Gets the node's labels; undefined: standalone. Never rejects. */
  readonly refreshPlace: (() => Promise<void>) | undefined;
  /** Receives admitted and rejected pods. Not called while a pod waits. */
  readonly next: (change: PodChange, rejection: Rejection | undefined) => void;
}

/** A pod that can be admitted once others have stopped. */
interface Waiting {
  change: PodChange;
  lacks: string;
}

/**
 * Admits pods in order. A pod that has room only after others have stopped waits here, and later pods see its share as
 * taken, unless a critical pod takes precedence over it.
 */
export class AdmissionQueue {
  readonly #deps: AdmissionQueueDependencies;
  readonly #waiting = new Map<PodUid, Waiting>();
  /** Pods for which the node's labels are being refreshed; false: they have been refreshed. */
  readonly #looking = new Map<PodUid, boolean>();
  #isRetrying = false;

  constructor(deps: AdmissionQueueDependencies) {
    this.#deps = deps;
  }

  /** Pods that wait for room. */
  get pods(): Pod[] {
    return [...this.#waiting.values()].map(({ change }) => change.pod);
  }

  /** A new pod, not running yet. */
  add(change: PodChange): void {
    this.#judge(change, this.#decide(change.pod), undefined);
  }

  /**
   * Whether the pod would be rejected beside the admitted pods alone, without those that wait.
   * @param reason only for this one; undefined: for any
   */
  lost(pod: Pod, reason: Rejection["reason"] | undefined): boolean {
    const admission = this.#deps.decide(this.#toHave(pod), this.#letIn(pod));
    return admission.kind === "reject" && (reason === undefined || admission.rejection.reason === reason);
  }

  /** True when the changed pod is waiting: the change has been merged. */
  update(change: PodChange): boolean {
    const { uid } = change.pod.metadata;
    const waiting = this.#waiting.get(uid);
    if (waiting === undefined) return false;
    if (change.op === "remove") {
      this.#waiting.delete(uid);
      this.#record("PodFinished", change.pod, "the pod is no longer desired and never started", change.cause);
    } else if (change.pod.metadata.deletionTimestamp === undefined) {
      waiting.change = { ...change, op: "add" };
    } else {
      this.#waiting.delete(uid);
      return false;
    }
    this.retry();
    return true;
  }

  /** Resources were released or the node changed: judges the waiting pods in order of arrival. */
  retry(): void {
    if (this.#isRetrying || this.#waiting.size === 0) return;
    this.#isRetrying = true;
    try {
      // A refresh of the node's labels may put a pod back into the queue meanwhile.
      for (const [uid, waiting] of [...this.#waiting]) {
        const { change } = waiting;
        if (this.#looking.get(uid) === true) continue;
        const admission = this.#decide(change.pod);
        if (admission.kind === "reject") this.#waiting.delete(uid);
        this.#judge(change, admission, waiting);
        // Only once it holds its share: otherwise a deferred resize would count that share as free.
        if (admission.kind === "admit") this.#waiting.delete(uid);
      }
    } finally {
      this.#isRetrying = false;
    }
  }

  #decide(pod: Pod): Admission {
    return this.#deps.decide(this.#toHave(pod), this.#holders(pod));
  }

  /** Waiting pods before this one: earlier ones that it may not preempt, and later ones that may preempt it. */
  #ahead(pod: Pod): Pod[] {
    const waiting = this.pods;
    const place = waiting.findIndex(({ metadata }) => metadata.uid === pod.metadata.uid);
    return waiting.filter((other, index) => {
      if (index === place || mayPreempt(pod, other)) return false;
      return place < 0 || index < place || mayPreempt(other, pod);
    });
  }

  /**
   * A new pod with its allocated resources: what an earlier run allocated, since any difference is a resize (upstream's
   * AddPod). The allocation of a predecessor with the same UID that is still stopping does not count.
   */
  #toHave(pod: Pod): Pod {
    const { workers, granted } = this.#deps;
    return workers.list().some(({ uid }) => uid === pod.metadata.uid) ? pod : granted(pod);
  }

  #judge(change: PodChange, admission: Admission, waiting: Waiting | undefined): void {
    switch (admission.kind) {
      case "admit":
        this.#deps.next(change, undefined);
        this.#checkLetIn(change.pod);
        return;
      case "reject":
        if (!this.#looksAgain(change, admission.rejection)) this.#deps.next(change, admission.rejection);
        return;
      case "wait":
      case "preempt":
        this.#wait(change, admission.lacks, waiting);
    }
    if (admission.kind === "preempt") this.#preempt(change, admission);
  }

  /** Its part would be given to the next as well. */
  #checkLetIn({ metadata: { uid } }: Pod): void {
    const { workers } = this.#deps;
    const id = podUid(uid);
    const isCounted = workers.get(id) !== undefined || workers.returning(id) !== undefined;
    invariant("an admitted pod is counted immediately", isCounted, () => uid);
  }

  /** The scheduler may know newer labels than this node: refresh them once before a rejection. */
  #looksAgain(change: PodChange, { reason }: Rejection): boolean {
    const { refreshPlace } = this.#deps;
    const { uid } = change.pod.metadata;
    if (reason !== "NodeAffinity" || refreshPlace === undefined) return false;
    if (this.#looking.get(uid) === false) {
      this.#looking.delete(uid);
      return false;
    }
    this.#waiting.set(uid, { change, lacks: "" });
    this.#looking.set(uid, true);
    void refreshPlace().then(() => {
      this.#looking.set(uid, false);
      this.retry();
      this.#looking.delete(uid);
    });
    return true;
  }

  #wait(change: PodChange, lacks: string, waiting: Waiting | undefined): void {
    if (waiting === undefined) this.#waiting.set(change.pod.metadata.uid, { change, lacks });
    else if (waiting.lacks === lacks) return;
    else waiting.lacks = lacks;
    const message = `the pod waits for other pods to stop: ${lacks}`;
    this.#record("AdmissionWaits", change.pod, message, change.cause);
  }

  /** As upstream, with the grace period of each; the preempting pod waits for their end. */
  #preempt(
    { pod, cause }: PodChange,
    { victims, resource }: { readonly victims: readonly Pod[]; readonly resource: string },
  ): void {
    for (const victim of victims) {
      const mayGo = mayPreempt(pod, victim);
      invariant("only a pod of lower rank is preempted", mayGo, () => `${victim.metadata.uid} for ${pod.metadata.uid}`);
      const { namespace, name, uid } = pod.metadata;
      const because: Cause = {
        code: "CriticalPod",
        message: `making room for critical pod ${namespace}/${name}`,
        because: cause,
      };
      const { reason, message } = preempting;
      const entry = this.#record(reason, victim, message, because, { resource, preemptor: uid });
      void this.#deps.killer.kill(victim, preempted(victim, entry, because));
    }
  }

  #record(what: NameOf<"decision">, pod: Pod, message: string, cause: Cause, data?: JournalInput["data"]): number {
    return this.#deps.journal.record({
      kind: "decision",
      what,
      message,
      pod: podRef(pod),
      cause,
      ...(data && { data }),
    });
  }

  #holders(candidate: Pod): Holder[] {
    const { granted, unclaimed } = this.#deps;
    const promised = this.#ahead(candidate).map((pod) => ({ pod: this.#toHave(pod), ending: false }));
    const running = unclaimed().map((pod) => ({ pod: granted(pod), ending: true }));
    const others = [...promised, ...running].filter(({ pod }) => !isSameName(pod, candidate));
    return [...this.#letIn(candidate), ...others];
  }

  /** Pods that hold resources. One of the same full name is being replaced: the new pod waits for it anyway. */
  #letIn(candidate: Pod): Holder[] {
    const { workers, granted } = this.#deps;
    const held = workers.list().flatMap((worker): Holder[] => {
      const { pod } = worker;
      // A pod that returns already holds its share, unless it was rejected.
      const returning = workers.returning(worker.uid);
      if (returning !== undefined) return [{ pod: returning.letIn, ending: returning.end !== undefined }];
      return pod === undefined || !isActive(worker) ? [] : [{ pod: granted(pod), ending: isEnding(worker) }];
    });
    return held.filter(({ pod }) => !isSameName(pod, candidate));
  }
}

function isActive({ state }: PodWorker): boolean {
  return state.kind === "syncing" || state.kind === "terminating";
}

function isEnding({ state, forgotten }: PodWorker): boolean {
  return state.kind === "terminating" || forgotten;
}

function isSameName({ metadata: a }: Pod, { metadata: b }: Pod): boolean {
  return a.name === b.name && a.namespace === b.namespace;
}
