import type { PodUid } from "../base/ids.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { PodCondition } from "../api/status.ts";
import { formatTime } from "../base/time.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import { qosClass } from "../resources/qos.ts";
import type { ApiPod } from "../sources/api-pod.ts";
import { isTerminalPhase } from "./phase.ts";
import type { StatusManager } from "./status-manager.ts";

export interface IgnoredPodDependencies {
  readonly clock: Clock;
  readonly statuses: Pick<StatusManager, "get" | "set" | "remove">;
  /** The API server's pods whose names are taken by static pods of the node. */
  readonly ignored: () => readonly ApiPod[];
  /** Whether the node holds, or may hold, resources of the pod of that UID. */
  readonly mayHave: (uid: PodUid) => boolean;
  /** The server may remove the pod of that UID once it is deleted. */
  readonly released: (uid: PodUid) => void;
}

/** The status of a pod whose name is taken. */
export const nameTaken = {
  reason: "NameTaken",
  message: "a static pod of this node has the same name: this pod starts once it is gone",
} as const;

const readyConditions: ReadonlySet<string> = new Set(["Ready", "ContainersReady"]);
const cause: Cause = { code: nameTaken.reason, message: nameTaken.message };
/** Interval of checking whether a pod still holds resources, while there is one. */
const lookMs = 5000;
const idleMs = 60_000;

/**
 * Pods of the API server without a worker because static pods have their names: their status says so, and they can be
 * deleted.
 */
export class IgnoredPods {
  readonly #deps: IgnoredPodDependencies;
  readonly #wait: WakeableWait;

  constructor(deps: IgnoredPodDependencies) {
    this.#deps = deps;
    this.#wait = new WakeableWait(deps.clock, "the next check of pods whose names are taken");
  }

  /** The desired pods changed, or one was removed. */
  wake(): void {
    this.#wait.wake();
  }

  /** The server no longer has the pod of that UID. */
  podGone(uid: PodUid): void {
    // Nothing else forgets the status of a pod without a worker.
    if (!this.#deps.mayHave(uid)) this.#deps.statuses.remove(uid);
  }

  /** Manages them until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const ignored = this.#deps.ignored();
      for (const pod of ignored) if (!this.#deps.mayHave(pod.metadata.uid)) this.#look(pod);
      await this.#wait.for(ignored.length > 0 ? lookMs : idleMs, signal);
    }
  }

  #look(pod: ApiPod): void {
    const { uid, deletionTimestamp, generation } = pod.metadata;
    if (deletionTimestamp !== undefined) return this.#deps.released(uid);
    const before = this.#deps.statuses.get(uid) ?? pod.status;
    if (before !== undefined && isTerminalPhase(before.phase)) return;
    const status = {
      ...before,
      ...(generation && { observedGeneration: generation }),
      ...nameTaken,
      // Going back from Running to Pending is not allowed.
      phase: before?.phase ?? "Pending",
      ...(before?.conditions && { conditions: before.conditions.map((condition) => this.#unready(condition)) }),
      qosClass: qosClass(pod),
    };
    this.#deps.statuses.set(pod, status, cause);
  }

  /** Nothing of the pod runs, whatever an earlier run reported. */
  #unready(condition: PodCondition): PodCondition {
    if (!readyConditions.has(condition.type) || condition.status !== "True") return condition;
    const lastTransitionTime = formatTime(this.#deps.clock.now());
    return { ...condition, status: "False", lastTransitionTime, ...nameTaken };
  }
}
