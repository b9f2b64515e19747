import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { NameOf } from "../journal/vocabulary.ts";

/** How a pod's holdings are released. */
export interface Release {
  readonly cause: Cause;
  /** The pod is desired again under its UID: the last log of each container stays, so that restart counts continue. */
  readonly comesBack: boolean;
}

/**
 * Something that a pod holds of the node. It is found on the node, not from this run's memory: releasing is idempotent,
 * and a retry completes a failed release.
 */
export interface PodHolding {
  /** As in `remove the cgroup of pod …`. */
  readonly name: string;
  /** `ended`: released once the pod has ended for good. `removed`: kept for as long as the pod is shown. */
  readonly until: "ended" | "removed";
  release(pod: PodRef, release: Release, signal: AbortSignal): Promise<void>;
  /** Whether something of it is not podwright's to release, so that the pod's directory stays. */
  keeps?(uid: PodUid): Promise<boolean>;
  /** For leftovers of a pod that has nothing else on the node. */
  readonly leftovers?: {
    /** The journal's action that releases it. */
    readonly what: NameOf<"action">;
    /** UIDs of all pods that hold it. */
    uids(): Promise<readonly PodUid[]>;
  };
  /** For a node that stops without pods: removes what all pods shared, such as the parent cgroups. */
  tidyUp?(): Promise<void>;
}

/** What pods hold of the node, in the order in which it is released. */
export class PodHoldings {
  readonly all: readonly PodHolding[];

  constructor(all: readonly PodHolding[]) {
    const order = all.map(({ until }) => until);
    // What others need of a pod that has ended must not wait for its removal.
    const isInOrder = order.lastIndexOf("ended") < (order.indexOf("removed") + 1 || order.length + 1);
    invariant("what a pod holds until it ends is released first", isInOrder, () => order.join());
    this.all = all;
  }

  /** Releases an ended pod's shared resources: its logs and messages stay. */
  async releaseEnded(pod: PodRef, cause: Cause, signal: AbortSignal): Promise<void> {
    await this.#release("ended", pod, { cause, comesBack: false }, signal);
  }

  /** Releases the rest of a removed pod. */
  async releaseRemoved(pod: PodRef, release: Release, signal: AbortSignal): Promise<void> {
    await this.#release("removed", pod, release, signal);
  }

  /** Whether something that the pod holds is not podwright's to release. */
  async keep(uid: PodUid): Promise<boolean> {
    for (const holding of this.all) if ((await holding.keeps?.(uid)) === true) return true;
    return false;
  }

  async tidyUp(): Promise<void> {
    for (const holding of this.all) await holding.tidyUp?.();
  }

  async #release(until: PodHolding["until"], pod: PodRef, release: Release, signal: AbortSignal): Promise<void> {
    for (const holding of this.all) if (holding.until === until) await holding.release(pod, release, signal);
  }
}
