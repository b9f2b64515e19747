import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { PodChange } from "./pod-change.ts";

/**
 * Holds back changes of pods that contend with others for something of the node until the runtime has been listed once;
 * then those that it has pass first. What runs keeps what it holds over a restart of podwright, whoever else wants it
 * and in whichever order the sources name them.
 */
export class AfterListing {
  readonly #pleg: Pick<Pleg, "firstListing" | "isListed" | "lastRelistMs">;
  readonly #next: (change: PodChange) => void;
  #held: PodChange[] = [];

  constructor(pleg: Pick<Pleg, "firstListing" | "isListed" | "lastRelistMs">, next: (change: PodChange) => void) {
    this.#pleg = pleg;
    this.#next = next;
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
    if (!isHeld && (!contends || this.#pleg.lastRelistMs !== undefined)) return false;
    if (this.#held.length === 0) void this.#pleg.firstListing.then(() => this.#release());
    this.#held.push(change);
    return true;
  }

  #release(): void {
    const held = this.#held;
    this.#held = [];
    const runs = ({ pod }: PodChange): boolean => this.#pleg.isListed(podUid(pod.metadata.uid));
    for (const change of [...held.filter(runs), ...held.filter((other) => !runs(other))]) this.#next(change);
  }
}
