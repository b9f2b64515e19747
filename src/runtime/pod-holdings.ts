import type { Cause, PodRef } from "../journal/entry.ts";
import type { NameOf } from "../journal/vocabulary.ts";

/** How a pod lets go. */
export interface Release {
  readonly cause: Cause;
  /** The pod is wanted again under its UID: the last log of each container stays, so that restarts are counted on. */
  readonly comesBack: boolean;
}

/**
 * Something that a pod holds of the node. It is found by what is on the node, not by what this life remembers: releasing
 * what is not held is no error, and what failed halfway is released by the next try.
 */
export interface PodHolding {
  /** As in `remove the cgroup of pod …`. */
  readonly name: string;
  /** `ended`: others may need it once the pod has ended for good. `removed`: it stays for as long as the pod is shown. */
  readonly until: "ended" | "removed";
  release(pod: PodRef, release: Release, signal: AbortSignal): Promise<void>;
  /** Whether something of it is not podwright's to release, so that the pod's directory stays. */
  keeps?(uid: string): Promise<boolean>;
  /** For what may be left of a pod that has nothing else on the node. */
  readonly leftovers?: {
    /** Action of the journal by which it is released. */
    readonly what: NameOf<"action">;
    /** UIDs of all pods that hold it. */
    uids(): Promise<readonly string[]>;
  };
  /** For a node that ends without pods: removes what all of them shared. */
  tidyUp?(): Promise<void>;
}

/** What pods hold of the node, in the order in which it is released. */
export class PodHoldings {
  readonly all: readonly PodHolding[];

  constructor(all: readonly PodHolding[]) {
    this.all = all;
  }

  /** Takes from a pod that has ended for good what others may need: its logs and messages stay. */
  async releaseEnded(pod: PodRef, cause: Cause, signal: AbortSignal): Promise<void> {
    await this.#release("ended", pod, { cause, comesBack: false }, signal);
  }

  /** Takes the rest from a pod that is removed. */
  async releaseRemoved(pod: PodRef, release: Release, signal: AbortSignal): Promise<void> {
    await this.#release("removed", pod, release, signal);
  }

  /** Whether something that the pod holds is not podwright's to release. */
  async keep(uid: string): Promise<boolean> {
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
