import { byCreation } from "../api/creation-order.ts";
import { isDeleted } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { StartUp } from "../base/start-up.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { Clock } from "../ports/clock.ts";
import { type CheckpointDependencies, keepDeletion } from "./pod-checkpoint.ts";
import type { PodChange } from "./pod-change.ts";
import type { StaticIdentity } from "./static-identity.ts";
import type { UnclaimedPods } from "./unclaimed-pods.ts";

export interface StartUpGateDependencies {
  readonly clock: Pick<Clock, "now">;
  readonly startUp: Pick<StartUp, "has" | "when">;
  readonly pleg: Pick<Pleg, "isListed" | "ran">;
  /** Where changes come from. */
  readonly identity: Pick<StaticIdentity, "settled">;
  /** True once every source, or the named one, has delivered. */
  readonly sourcesReady: (source?: string) => boolean;
  /** What must be known before pods that are not running are admitted. */
  readonly unclaimed: Pick<UnclaimedPods, "load">;
  /** Where deletions are stored that come before their pod has a worker. */
  readonly checkpoint: CheckpointDependencies;
}

/**
 * Holds back new pods until the first relist, and then, until all running pods are known, while a source is still
 * delivering; after that, pods that run pass first, and then those of which the runtime has the remains: after a restart of
 * the machine, pods that ran before. So a running pod keeps its resources over a restart of podwright, whatever else is
 * desired and in whichever order.
 */
export class StartUpGate {
  readonly #deps: StartUpGateDependencies;
  #next: (change: PodChange) => void = () => {};
  #held: PodChange[] = [];
  #isPassing = false;
  #deletions: Promise<void> = Promise.resolve();

  constructor(deps: StartUpGateDependencies) {
    this.#deps = deps;
  }

  /**
   * To be called once, before the first change.
   * @param next takes changes, in an order in which pods that run come first, and among equals the oldest
   */
  connect(next: (change: PodChange) => void): void {
    this.#next = next;
  }

  /** Pods held back. */
  get pods(): Pod[] {
    const pods = new Map<PodUid, Pod>();
    for (const { op, pod } of this.#held) {
      if (op === "remove") pods.delete(pod.metadata.uid);
      else pods.set(pod.metadata.uid, pod);
    }
    return [...pods.values()];
  }

  /**
   * Whether the runtime was listed, and every source, or the named one, has delivered, and all of that has been passed
   * on: otherwise no pod is known to be an orphan.
   */
  hasPassedAll(source?: string): boolean {
    const { identity, startUp, sourcesReady } = this.#deps;
    const isUnderWay = !identity.settled || this.#isPassing || this.#held.length > 0;
    return startUp.has("listed") && !isUnderWay && sourcesReady(source);
  }

  /** Passes the change on, now or later. */
  handle(change: PodChange): void {
    const isHeld = this.#mustWait(change);
    if (isHeld) this.#held.push(change);
    // After the relist, at the end of the current delivery: requested by each change, also by those that pass.
    if (this.#held.length > 0) void this.#deps.startUp.when("listed").then(() => this.#release());
    if (isHeld) this.#keepDeletion(change);
    else this.#next(change);
  }

  /** Changes of one pod stay in order; a pod that has passed competes for nothing new. */
  #mustWait({ op, pod }: PodChange): boolean {
    if (this.#held.some((held) => held.pod.metadata.uid === pod.metadata.uid)) return true;
    return op === "add" && !this.#deps.startUp.has("allKnown");
  }

  #keepDeletion({ op, pod }: PodChange): void {
    if (op !== "remove" && !isDeleted(pod)) return;
    const { checkpoint, clock } = this.#deps;
    // One after the other: a pod deleted and gone at the same time is written twice.
    this.#deletions = this.#deletions.then(() => keepDeletion(checkpoint, pod, clock.now()));
  }

  #release(isPrepared = false): void {
    if (!this.#deps.identity.settled) return;
    const { pleg } = this.#deps;
    this.#pass((uid) => pleg.ran(uid));
    if (isPrepared) {
      this.#pass((uid) => pleg.isListed(uid));
      this.#pass(() => true);
    } else if (this.#held.length > 0) void this.#deps.unclaimed.load().then(() => this.#release(true));
  }

  #pass(isNext: (uid: PodUid) => boolean): void {
    const changes = Map.groupBy(this.#held, ({ pod }) => isNext(pod.metadata.uid));
    this.#isPassing = true;
    this.#held = changes.get(false) ?? [];
    for (const change of oldestFirst(changes.get(true) ?? [])) this.#next(change);
    this.#isPassing = false;
  }
}

/** Changes of one pod keep their order. */
function oldestFirst(changes: readonly PodChange[]): PodChange[] {
  const first = new Map<PodUid, Pod>();
  for (const { pod } of changes) if (!first.has(pod.metadata.uid)) first.set(pod.metadata.uid, pod);
  const asFirst = ({ pod }: PodChange): Pod => first.get(pod.metadata.uid) ?? pod;
  return changes.toSorted((a, b) => byCreation(asFirst(a), asFirst(b)));
}
