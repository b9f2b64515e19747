import type { Pod } from "../api/pod.ts";
import { isMirrorPod } from "../api/pod-kind.ts";
import type { PodUid } from "../base/ids.ts";
import type { ApiPod } from "./api-pod.ts";
import type { SourceChange, SourcedPod, SourceState } from "./source.ts";

/** Listeners for the API server's pods. They must not throw. */
export interface ApiPodListener {
  /** A pod as the server has it now; mirror pods too. */
  podSeen(pod: ApiPod): void;
  podGone(pod: ApiPod): void;
  /** All pods of this node were delivered. */
  podsKnown(): void;
}

export interface ApiSourceDependencies {
  /** Receives all pods, once they are listed. */
  readonly deliver: (state: SourceState) => void;
  /** Receives each change afterwards. */
  readonly change: (change: SourceChange) => void;
}

interface Known {
  readonly pod: ApiPod;
  readonly sourced: SourcedPod;
}

/**
 * The pods that the API server binds to this node. Mirror pods show pods of another source: the listener gets them, but
 * they are not delivered. Nothing is delivered before all pods are known.
 */
export class ApiSource {
  readonly #deps: ApiSourceDependencies;
  readonly #listener: ApiPodListener;
  #pods = new Map<PodUid, Known>();
  #isKnown = false;
  /** UIDs of undecodable pods: their specs are unknown, which is no reason to stop them. */
  readonly #unread = new Set<PodUid>();

  constructor(deps: ApiSourceDependencies, listener: ApiPodListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  /** Whether the server has the pod of that UID, and is not known to have removed it. */
  get(uid: PodUid): ApiPod | undefined {
    return this.#pods.get(uid)?.pod;
  }

  /** Whether the server has delivered all of its pods. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** @param unread UIDs of pods that are there too, and can't be read */
  replaced(pods: readonly ApiPod[], unread: readonly PodUid[]): void {
    this.#isKnown = true;
    this.#unread.clear();
    for (const uid of unread) this.#unread.add(uid);
    const before = this.#pods;
    this.#pods = new Map(pods.map((pod) => [pod.metadata.uid, known(pod, before.get(pod.metadata.uid))]));
    for (const [uid, { pod }] of before) if (!this.#pods.has(uid)) this.#listener.podGone(pod);
    // Statuses of earlier runs are known before the pods' workers make new ones.
    for (const { pod } of this.#pods.values()) this.#listener.podSeen(pod);
    this.#listener.podsKnown();
    this.#deliver();
  }

  changed(type: "ADDED" | "MODIFIED" | "DELETED", pod: ApiPod): void {
    const { uid } = pod.metadata;
    const before = this.#pods.get(uid);
    this.#unread.delete(uid);
    if (type === "DELETED") {
      if (!this.#pods.delete(uid)) return;
      this.#listener.podGone(pod);
      this.#change(before, undefined);
      return;
    }
    const after = known(pod, before);
    this.#pods.set(uid, after);
    this.#listener.podSeen(pod);
    if (before?.sourced !== after.sourced) this.#change(before, after);
  }

  unreadGone(uid: PodUid): void {
    if (this.#unread.delete(uid)) this.#change(undefined, undefined);
  }

  #deliver(): void {
    const pods = [...this.#pods.values()].flatMap((each) => desired(each) ?? []);
    this.#deps.deliver({ pods, complete: this.#isComplete });
  }

  #change(before: Known | undefined, after: Known | undefined): void {
    this.#deps.change({ left: before && desired(before), came: after && desired(after), complete: this.#isComplete });
  }

  get #isComplete(): boolean {
    return this.#unread.size === 0;
  }
}

/** Undefined for a mirror pod. */
function desired({ pod, sourced }: Known): SourcedPod | undefined {
  return isMirrorPod(pod) ? undefined : sourced;
}

/** An unchanged spec keeps its object: most changes of a pod are of its status. */
function known(pod: ApiPod, before: Known | undefined): Known {
  const { metadata } = pod;
  // Half of a change may be worse than none.
  const spec = before !== undefined && pod.isPartial ? before.pod.spec : pod.spec;
  const whole = { ...pod, spec };
  if (before?.pod.definition === pod.definition) return { ...before, pod: whole };
  const wanted: Pod = { metadata, spec };
  return {
    pod: whole,
    sourced: { pod: wanted, place: `API server pod ${metadata.namespace}/${metadata.name}` },
  };
}
