import { withDeadline } from "../base/deadline.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Clock } from "../ports/clock.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";

/**
 * The number of an observation, counted by the one writer. Upstream uses a wall-clock time here; two clocks that
 * disagree broke Evented PLEG.
 */
export type Observation = number;

interface Data {
  readonly status: PodStatus;
  /** Set when the last inspection failed; the status is then the last good one. */
  readonly error: Error | undefined;
  readonly observed: Observation;
}

interface Subscriber {
  readonly newerThan: Observation;
  readonly deliver: (data: Data) => void;
}

/**
 * The runtime's state of every pod, as last observed. PLEG is the only writer.
 *
 * A pod without an entry is one that the runtime does not have: reading it yields an empty status, as fresh as the last
 * full relist.
 */
export class PodCache {
  readonly #clock: Clock;
  readonly #pods = new Map<PodUid, Data>();
  readonly #subscribers = new Map<PodUid, Subscriber[]>();
  /**
   * Pods known to have changed, with the last observation that had begun by then: only a later inspection counts for
   * them, a full relist does not.
   */
  readonly #stale = new Map<PodUid, Observation>();
  /** Every pod that is not stale is current as of this observation. */
  #allObserved: Observation = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The last known status and the error of the last inspection, if it failed. Never waits. */
  get(uid: PodUid): { readonly status: PodStatus; readonly error: Error | undefined; readonly observed: Observation } {
    return this.#read(uid);
  }

  /** Stores the result of an inspection that began as observation `observed`; one older than the stored is dropped. */
  set(uid: PodUid, status: PodStatus, error: Error | undefined, observed: Observation): void {
    const known = this.#pods.get(uid);
    // The writer numbers each observation once.
    invariant("observations of a pod are distinct", known?.observed !== observed, () => `${uid}: ${observed}`);
    if (known !== undefined && known.observed > observed) return;
    // A request by UID precedes a decision about that pod.
    invariant("a cache entry has its pod's UID", status.uid === uid, () => `${status.uid} is stored as ${uid}`);
    if (observed > (this.#stale.get(uid) ?? 0)) this.#stale.delete(uid);
    this.#pods.set(uid, { status, error, observed });
    this.#notify(uid);
  }

  /**
   * Marks the pod as changed after observation `began` had begun, so that neither relists nor a current inspection make
   * its entry look fresh.
   */
  markStale(uid: PodUid, began: Observation): void {
    const before = this.#stale.get(uid) ?? 0;
    // An inspection in progress at the later mark would count as one after it.
    invariant("an earlier observation does not mark a pod stale", began >= before, () => `${uid}: ${began}, ${before}`);
    this.#stale.set(uid, began);
  }

  /** Whether the pod is known to have changed since its last inspection. */
  isStale(uid: PodUid): boolean {
    return this.#stale.has(uid);
  }

  /** Forgets a pod that is neither in the runtime nor desired. */
  delete(uid: PodUid): void {
    this.#pods.delete(uid);
    this.#stale.delete(uid);
  }

  /** A full relist that began as `observed` showed no change of any pod but the stale ones. */
  updateTime(observed: Observation): void {
    if (observed <= this.#allObserved) return;
    this.#allObserved = observed;
    for (const uid of this.#subscribers.keys()) this.#notify(uid);
  }

  has(uid: PodUid): boolean {
    return this.#pods.has(uid);
  }

  /** UIDs with an entry. */
  uids(): PodUid[] {
    return [...this.#pods.keys()];
  }

  /**
   * Waits for a status that was observed after `newerThan` and returns it; rejects with the inspection's error when
   * that failed, with `DeadlineError` after `limitMs`, or with the signal's reason.
   */
  async getNewerThan(uid: PodUid, newerThan: Observation, limitMs: number, signal?: AbortSignal): Promise<PodStatus> {
    const known = this.#read(uid);
    const data = known.observed > newerThan ? known : await this.#wait(uid, newerThan, limitMs, signal);
    // Subscribers get nothing older.
    const isNewer = data.observed > newerThan;
    invariant(
      "a wait for an observation ends with a newer one",
      isNewer,
      () => `${uid}: ${data.observed}, ${newerThan}`,
    );
    if (data.error !== undefined) throw data.error;
    return data.status;
  }

  async #wait(uid: PodUid, newerThan: Observation, limitMs: number, signal?: AbortSignal): Promise<Data> {
    const { promise, resolve } = Promise.withResolvers<Data>();
    const subscriber: Subscriber = { newerThan, deliver: resolve };
    this.#subscribers.set(uid, [...(this.#subscribers.get(uid) ?? []), subscriber]);
    try {
      return await withDeadline(this.#clock, `inspection of pod ${uid}`, limitMs, signal, () => promise);
    } finally {
      this.#unsubscribe(uid, subscriber);
    }
  }

  #notify(uid: PodUid): void {
    const subscribers = this.#subscribers.get(uid);
    if (subscribers === undefined) return;
    const data = this.#read(uid);
    for (const subscriber of subscribers) {
      if (data.observed > subscriber.newerThan) subscriber.deliver(data);
    }
  }

  #unsubscribe(uid: PodUid, subscriber: Subscriber): void {
    const rest = (this.#subscribers.get(uid) ?? []).filter((other) => other !== subscriber);
    if (rest.length === 0) this.#subscribers.delete(uid);
    else this.#subscribers.set(uid, rest);
  }

  #read(uid: PodUid): Data {
    const known = this.#pods.get(uid);
    const status = known?.status ?? { uid, name: "", namespace: "", sandboxes: [], containers: [] };
    const own = known?.observed ?? 0;
    const observed = this.#stale.has(uid) ? own : Math.max(own, this.#allObserved);
    return { status, error: known?.error, observed };
  }
}
