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
  /** The API server's pods whose names pods of the node's own have. */
  readonly ignored: () => readonly ApiPod[];
  /** Whether the node has, or may have, something of the pod of that UID. */
  readonly mayHave: (uid: string) => boolean;
  /** The server may remove the pod of that UID once it is deleted. */
  readonly released: (uid: string) => void;
}

/** What a pod shows whose name is taken, until it has it. */
export const nameTaken = {
  reason: "NameTaken",
  message: "a static pod of this node has the same name: this pod starts once it is gone",
} as const;

const readyConditions: ReadonlySet<string> = new Set(["Ready", "ContainersReady"]);
const cause: Cause = { code: nameTaken.reason, message: nameTaken.message };
/** Whether the node has something of a pod is looked at again, while there is such a pod. */
const lookMs = 5000;
const idleMs = 60_000;

/**
 * Pods of the API server that have no worker, as static pods have their names: what they wait for is their status, and
 * they can be deleted.
 */
export class IgnoredPods {
  readonly #deps: IgnoredPodDependencies;
  readonly #wait: WakeableWait;

  constructor(deps: IgnoredPodDependencies) {
    this.#deps = deps;
    this.#wait = new WakeableWait(deps.clock, "the next check of pods whose names are taken");
  }

  /** What is wanted of the node has changed, or a pod of it is gone. */
  wake(): void {
    this.#wait.wake();
  }

  /** The server has the pod of that UID no longer. */
  podGone(uid: string): void {
    // Nobody else forgets what a pod without a worker has told.
    if (!this.#deps.mayHave(uid)) this.#deps.statuses.remove(uid);
  }

  /** Looks after them until the signal aborts. Never rejects. */
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
      // Of one that has been Running, that it is Pending would be a step back.
      phase: before?.phase ?? "Pending",
      ...(before?.conditions && { conditions: before.conditions.map((condition) => this.#unready(condition)) }),
      qosClass: qosClass(pod),
    };
    this.#deps.statuses.set(pod, status, cause);
  }

  /** Nothing of the pod runs, whatever an earlier life said of it. */
  #unready(condition: PodCondition): PodCondition {
    if (!readyConditions.has(condition.type) || condition.status !== "True") return condition;
    const lastTransitionTime = formatTime(this.#deps.clock.now());
    return { ...condition, status: "False", lastTransitionTime, ...nameTaken };
  }
}
