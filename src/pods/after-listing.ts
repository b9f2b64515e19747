import type { Pod } from "../api/pod.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { PodChange } from "./pod-change.ts";

export interface AfterListingDependencies {
  readonly pleg: Pick<Pleg, "firstListing" | "isListed">;
  /** Whether every running pod is known to be desired or orphaned. */
  readonly knowsAll: () => boolean;
  /** Whether changes are pending that the sources delivered at the same time. */
  readonly moreToCome: () => boolean;
  /** Determines what must be known before pods that are not running are admitted. Never rejects. */
  readonly beforeStarts: () => Promise<void>;
  readonly next: (change: PodChange) => void;
}

/**
 * Holds back changes of pods that compete for node resources until the first relist, and then, until all running pods
 * are known, while a source is still delivering; after that, pods that the runtime has pass first. So a running pod
 * keeps its resources over a restart of podwright, whatever else is desired and in whichever order.
 */
export class AfterListing {
  readonly #deps: AfterListingDependencies;
  #held: PodChange[] = [];
  #isPassing = false;

  constructor(deps: AfterListingDependencies) {
    this.#deps = deps;
  }

  /** True while only part of one delivery has been passed on. */
  get isBusy(): boolean {
    return this.#isPassing || this.#held.length > 0;
  }

  /** Pods held back. */
  get pods(): Pod[] {
    const pods = new Map<string, Pod>();
    for (const { op, pod } of this.#held) {
      if (op === "remove") pods.delete(pod.metadata.uid);
      else pods.set(pod.metadata.uid, pod);
    }
    return [...pods.values()];
  }

  /** True when the change is held back: it is passed on later. */
  holds(change: PodChange, contends: boolean): boolean {
    const { uid } = change.pod.metadata;
    const isHeld = this.#held.some(({ pod }) => pod.metadata.uid === uid);
    const holds = isHeld || (contends && !this.#deps.knowsAll());
    if (holds) this.#held.push(change);
    // Released after the first relist, once the current delivery is complete: every change requests it, held or not.
    if (this.#held.length > 0) void this.#deps.pleg.firstListing.then(() => this.#release());
    return holds;
  }

  #release(isPrepared = false): void {
    if (this.#deps.moreToCome()) return;
    this.#pass((uid) => this.#deps.pleg.isListed(uid));
    if (isPrepared) this.#pass(() => true);
    else if (this.#held.length > 0) void this.#deps.beforeStarts().then(() => this.#release(true));
  }

  #pass(isNext: (uid: PodUid) => boolean): void {
    const passes = ({ pod }: PodChange): boolean => isNext(podUid(pod.metadata.uid));
    const [next, left] = [this.#held.filter(passes), this.#held.filter((change) => !passes(change))];
    this.#isPassing = true;
    this.#held = left;
    for (const change of next) this.#deps.next(change);
    this.#isPassing = false;
  }
}
