import type { Pod } from "../api/pod.ts";
import { type PodUid, podUid } from "../base/ids.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { PodChange } from "./pod-change.ts";

export interface AfterListingDependencies {
  readonly pleg: Pick<Pleg, "firstListing" | "isListed">;
  /** Whether it is known of everything that runs that it is wanted, or not. */
  readonly knowsAll: () => boolean;
  /** Whether changes are on their way of which the sources said at the same time. */
  readonly moreToCome: () => boolean;
  /** Finds out what has to be known before pods that don't run are let in. Never rejects. */
  readonly beforeStarts: () => Promise<void>;
  readonly next: (change: PodChange) => void;
}

/**
 * Holds back changes of pods that contend with others for something of the node until the runtime has been listed once,
 * and then, until it is known who runs, for as long as a source still speaks; then those that the runtime has pass
 * first. What runs keeps what it holds over a restart of podwright, whoever else wants it and in whichever order a source
 * names them.
 */
export class AfterListing {
  readonly #deps: AfterListingDependencies;
  #held: PodChange[] = [];
  #isPassing = false;

  constructor(deps: AfterListingDependencies) {
    this.#deps = deps;
  }

  /** True while some of what was said at one time has been passed on, and some has not. */
  get isBusy(): boolean {
    return this.#isPassing || this.#held.length > 0;
  }

  /** Pods that are held back. */
  get pods(): Pod[] {
    const pods = new Map<string, Pod>();
    for (const { op, pod } of this.#held) {
      if (op === "remove") pods.delete(pod.metadata.uid);
      else pods.set(pod.metadata.uid, pod);
    }
    return [...pods.values()];
  }

  /** True when the change is held back: it is passed on by itself. */
  holds(change: PodChange, contends: boolean): boolean {
    const { uid } = change.pod.metadata;
    const isHeld = this.#held.some(({ pod }) => pod.metadata.uid === uid);
    const holds = isHeld || (contends && !this.#deps.knowsAll());
    if (holds) this.#held.push(change);
    // After the listing at the end of what is said at this moment: each change asks for that, also one that passes.
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
