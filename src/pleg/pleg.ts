import { EventChannel } from "../base/event-channel.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { Places } from "../base/places.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import { inspectPod, type LikelyIds, type ListedPod, listPods, noIds } from "../runtime/status/inspect.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { describeEvent, eventData } from "./event-text.ts";
import { type EventStream, EventTrust } from "./event-trust.ts";
import { computeEvents, type PodLifecycleEvent, type ContainerEvent, sandboxEvent } from "./events.ts";
import type { Observation, PodCache } from "./pod-cache.ts";
import { likelyIds, type PodRecord, type PodRecords, recordOf, recordOfListing, sameRecord } from "./pod-records.ts";
import { RelistOutcome } from "./relist-outcome.ts";
import { RelistSchedule } from "./relist-schedule.ts";

/** An event as it is delivered, with the journal entry that recorded it. */
export interface DeliveredEvent extends PodLifecycleEvent {
  readonly entry: number;
  /** What the entry says, one clause. */
  readonly message: string;
}

export interface PlegConfig {
  /** Between two listings of the runtime while no event stream works: 1 s (genericPlegRelistPeriod). */
  readonly relistPeriodMs: number;
  /** Between two listings while events come: listing then only verifies. */
  readonly eventedRelistPeriodMs: number;
  /** Events that may wait for the sync loop: 1000. */
  readonly channelCapacity: number;
  /** Pods inspected at a time; those that the runtime does not answer for count for a while only. */
  readonly inspections: number;
}

export interface PlegDependencies {
  readonly clock: Clock;
  readonly cri: Cri;
  readonly cache: PodCache;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly observer?: Observer | undefined;
}

/** An inspection is a matter of milliseconds; a runtime that is merely busy is not to be asked for everything at once. */
const slowInspectionMs = 5000;
/** As upstream's listings come: by then what a worker does is done, or takes so long that its middle is worth a look. */
const soonMs = 1000;

interface NamedIds extends LikelyIds {
  readonly sandboxes: Set<string>;
  readonly containers: Set<string>;
}

/** What is going on with one pod that has to be looked at. */
interface Inspection {
  /** Asked for while it ran: look again. */
  again: boolean;
  /** Somebody waits for an event even when nothing changed. */
  wanted: boolean;
}

/**
 * The Pod Lifecycle Event Generator: finds out what happens to pods in the runtime, keeps the pod cache, and tells.
 *
 * One writer: only an inspection changes the cache and the records, one at a time for a pod, numbered in the order in
 * which they began. Everything else (a listing that differs, an event of the runtime, a worker that has acted) is a hint
 * that starts an inspection. So a hint may come late, twice, in any order or not at all; a listing finds it out.
 *
 * Other than upstream's, a listing never waits for an inspection: a pod that hangs the runtime delays nobody else, and an
 * event that found the channel full stays with its pod and is offered again.
 */
export class Pleg {
  readonly events: EventChannel<DeliveredEvent>;
  /** Monotonic ms: since then the runtime is to be listed. */
  readonly beganMs: number;
  readonly #deps: PlegDependencies;
  readonly #config: PlegConfig;
  readonly #records: PodRecords = new Map();
  #listed: ReadonlyMap<PodUid, { readonly name: string; readonly namespace: string }> = new Map();
  readonly #inspections = new Map<PodUid, Inspection>();
  /** Ids that runtime events named since the last look at the pod. */
  readonly #named = new Map<PodUid, NamedIds>();
  readonly #afresh = new Set<PodUid>();
  /** Looks that are put off ({@link requestInspectSoon}); any other look takes the place of its pod's. */
  readonly #soon = new Map<PodUid, Disposable>();
  /** Pods that their workers are ending ({@link ending}). */
  readonly #ending = new Set<PodUid>();
  /** Pods whose last inspection failed: what was seen of them before still counts, and they are looked at again. */
  readonly #unseen = new Set<PodUid>();
  readonly #undelivered = new Map<PodUid, DeliveredEvent[]>();
  readonly #places: Places;
  #observation: Observation = 0;
  readonly #firstListing = Promise.withResolvers<void>();
  readonly #outcome: RelistOutcome;
  #discarded = 0;
  readonly #trust = new EventTrust();
  /** As it was last told. */
  #evented = false;
  readonly #schedule: RelistSchedule;
  #signal: AbortSignal | undefined;

  constructor(deps: PlegDependencies, config: PlegConfig) {
    this.#deps = deps;
    this.#config = config;
    this.beganMs = deps.clock.monotonic();
    this.events = new EventChannel(config.channelCapacity);
    this.#schedule = new RelistSchedule(deps.clock);
    this.#outcome = new RelistOutcome(deps);
    const { inspections: limit } = config;
    this.#places = new Places(deps, { kind: "an inspection", limit, patienceMs: slowInspectionMs });
  }

  /** Lists the runtime again and again until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    while (!signal.aborted) {
      await this.relist(signal);
      const verifies = this.#evented && !this.#outcome.isFailing;
      this.#schedule.within(verifies ? this.#config.eventedRelistPeriodMs : this.#config.relistPeriodMs);
      await this.#schedule.pause(signal);
    }
  }

  /** The number of the latest observation: whatever was done before this call is seen by those with a higher one. */
  now(): Observation {
    return this.#observation;
  }

  /** Monotonic ms of the last listing that succeeded; undefined before the first. The age is what health looks at. */
  get lastRelistMs(): number | undefined {
    return this.#outcome.lastMs;
  }

  /** Resolves when the runtime has been listed for the first time. */
  get firstListing(): Promise<void> {
    return this.#firstListing.promise;
  }

  /** Events that found the channel full so far. They were offered again later. */
  get discarded(): number {
    return this.#discarded;
  }

  /** True while the runtime's event stream can be relied on, and listing is only there to verify. */
  get evented(): boolean {
    return this.#evented;
  }

  /** Says how the runtime's event stream is; without one that can be relied on listing goes back to its short period at once. */
  setEvents(stream: EventStream): void {
    this.#trust.set(stream);
    this.#tellEvents();
  }

  /** Somebody found the runtime away: it is listed soon, and its answer told ({@link onRecovered}). */
  awaitAnswer(): void {
    this.#outcome.awaitAnswer(this.#observation);
    this.#schedule.within(this.#config.relistPeriodMs);
  }

  /** Tells when the runtime answers again that was away, until the result is disposed of. */
  onRecovered(listener: (cause: Cause) => void): Disposable {
    return this.#outcome.onRecovered(listener);
  }

  /** A hint that something of the pod may have changed: looks at it at once. */
  hint(uid: PodUid): void {
    if (this.#ending.has(uid)) this.requestInspectSoon(uid);
    else this.#inspect(uid, false);
  }

  /** Until disposed of, what ends of the pod is ended by its worker, whose look afterwards takes the place of others. */
  ending(uid: PodUid): Disposable {
    this.#ending.add(uid);
    return { [Symbol.dispose]: () => void this.#ending.delete(uid) };
  }

  /**
   * A hint that something may have changed that nobody waits for: the next listing finds it, and comes as soon as it
   * would without runtime events. However many such hints there are, they cost one listing.
   * @param named what it is about, which the next look at the pod is likely to find
   */
  hintThatCanWait(uid: PodUid, named?: { readonly sandbox: string; readonly id: string }): void {
    if (named !== undefined) this.#name(uid, named);
    this.#schedule.within(this.#config.relistPeriodMs);
  }

  /** Like a hint, and a `PodSync` event comes even when nothing changed (upstream's RequestReinspect). */
  requestInspect(uid: PodUid): void {
    this.#inspect(uid, true);
  }

  /** Like {@link requestInspect}, after something of the pod was removed: nothing is asked about that the lists don't show. */
  requestInspectAfresh(uid: PodUid): void {
    this.#afresh.add(uid);
    this.#inspect(uid, true);
  }

  /**
   * Like {@link requestInspect}, for what is being worked on: its next step is likely to ask for a look of its own, which
   * takes this one's place.
   */
  requestInspectSoon(uid: PodUid): void {
    if (this.#soon.has(uid)) return;
    this.#deps.cache.markStale(uid, this.#observation);
    this.#soon.set(
      uid,
      this.#deps.clock.timer("a relist of busy pods", soonMs, () => this.#inspect(uid, true)),
    );
  }

  /** Somebody waits for a look that may have been put off: it is taken now. */
  expedite(uid: PodUid): void {
    if (this.#soon.has(uid)) this.#inspect(uid, true);
  }

  /** True when the runtime showed the pod when it was last listed or looked at. */
  isListed(uid: PodUid): boolean {
    return this.#listed.has(uid) || this.#records.has(uid);
  }

  /** UIDs of all pods that the runtime showed when it was last listed or looked at. */
  get listed(): PodUid[] {
    return [...this.#listed.keys()];
  }

  /** UIDs of the pods of that name that the runtime showed when it was last listed or looked at. */
  podsNamed(namespace: string, name: string): PodUid[] {
    return [...this.#listed].filter(([, pod]) => pod.namespace === namespace && pod.name === name).map(([uid]) => uid);
  }

  /** One listing of the whole runtime: pods that differ from their record, or are owed an event, are inspected. */
  async relist(signal: AbortSignal): Promise<void> {
    const observed = ++this.#observation;
    this.#schedule.begin();
    const beganMs = this.#deps.clock.monotonic();
    let listed: Map<PodUid, ListedPod>;
    try {
      listed = await listPods(this.#deps.cri, signal);
    } catch (error) {
      if (!signal.aborted) this.#outcome.failed(error);
      return;
    }
    this.#outcome.succeeded(observed);
    this.#deps.observer?.relisted(this.#deps.clock.monotonic() - beganMs);
    this.#listed = listed;
    for (const uid of this.#named.keys()) if (!listed.has(uid)) this.#named.delete(uid);
    for (const uid of new Set([...this.#records.keys(), ...listed.keys(), ...this.#unseen])) {
      const isSame = sameRecord(this.#records.get(uid), recordOfListing(listed.get(uid)));
      if (!isSame || this.#unseen.has(uid)) this.#inspect(uid, false);
      else this.#redeliver(uid);
    }
    this.#deps.cache.updateTime(observed);
    this.#firstListing.resolve();
  }

  #name(uid: PodUid, { sandbox, id }: { readonly sandbox: string; readonly id: string }): void {
    const ids: NamedIds = this.#named.get(uid) ?? { sandboxes: new Set(), containers: new Set() };
    this.#named.set(uid, ids);
    if (sandbox !== "") ids.sandboxes.add(sandbox);
    if (id !== "" && id !== sandbox) ids.containers.add(id);
  }

  #inspect(uid: PodUid, wanted: boolean): void {
    this.#soon.get(uid)?.[Symbol.dispose]();
    const isWanted = this.#soon.delete(uid) || wanted;
    this.#deps.cache.markStale(uid, this.#observation);
    const running = this.#inspections.get(uid);
    if (running !== undefined) {
      running.again = true;
      running.wanted ||= isWanted;
      return;
    }
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    const inspection = { again: false, wanted: isWanted };
    this.#inspections.set(uid, inspection);
    void this.#inspectUntilSettled(uid, inspection, signal);
  }

  /** Never rejects: a failed look is stored as the pod's error, and the next listing or hint tries again. */
  async #inspectUntilSettled(uid: PodUid, inspection: Inspection, signal: AbortSignal): Promise<void> {
    try {
      do {
        inspection.again = false;
        const wanted = inspection.wanted;
        inspection.wanted = false;
        using _place = await this.#places.take("first", signal);
        await this.#look(uid, wanted, signal);
      } while (inspection.again && !signal.aborted);
    } catch (error) {
      if (!signal.aborted) this.#deps.log.error("cannot inspect a pod", { uid, error: errorMessage(error) });
    } finally {
      this.#inspections.delete(uid);
    }
  }

  async #look(uid: PodUid, wanted: boolean, signal: AbortSignal): Promise<void> {
    const observed = ++this.#observation;
    const beganMs = this.#deps.clock.monotonic();
    let status: PodStatus;
    try {
      const likely = this.#afresh.delete(uid) ? noIds : likelyIds(this.#records.get(uid), this.#named.get(uid));
      this.#named.delete(uid);
      status = await inspectPod(this.#deps.cri, uid, likely, signal);
    } catch (error) {
      if (signal.aborted) return;
      const last = this.#deps.cache.get(uid).status;
      this.#deps.cache.set(uid, last, error instanceof Error ? error : new Error(String(error)), observed);
      this.#unseen.add(uid);
      return;
    }
    this.#deps.observer?.inspected(this.#deps.clock.monotonic() - beganMs);
    this.#unseen.delete(uid);
    const before = this.#records.get(uid);
    const now = recordOf(status);
    const gone = now.containers.size === 0;
    if (gone) this.#forget(uid);
    else this.#records.set(uid, now);
    this.#deps.cache.set(uid, status, undefined, observed);
    const events = computeEvents(uid, before, gone ? undefined : now).map((event) =>
      this.#record(event, status, before),
    );
    if (events.length > 0 && before !== undefined) {
      this.#trust.changed();
      this.#tellEvents();
    }
    if (events.length === 0 && wanted) {
      events.push({ type: "PodSync", uid, id: "", container: "", entry: 0, message: "" });
    }
    this.#deliver(uid, events);
  }

  #forget(uid: PodUid): void {
    this.#records.delete(uid);
    this.#listed = new Map([...this.#listed].filter(([other]) => other !== uid));
  }

  #deliver(uid: PodUid, events: readonly DeliveredEvent[]): void {
    const owed = [
      ...(this.#undelivered.get(uid) ?? []),
      ...events.filter((event) => event.type !== "ContainerChanged"),
    ];
    while (owed[0] !== undefined && this.events.offer(owed[0])) owed.shift();
    if (owed.length === 0) {
      this.#undelivered.delete(uid);
      return;
    }
    if (!this.#undelivered.has(uid)) {
      this.#discarded++;
      this.#deps.journal.record({
        kind: "note",
        what: "EventDiscarded",
        message: `the event channel is full (${this.events.length}): events of pod ${uid} are retried`,
      });
    }
    // The reader needs the newest of them only: every event makes it look at the whole pod.
    this.#undelivered.set(uid, owed.slice(-8));
  }

  #redeliver(uid: PodUid): void {
    if (this.#undelivered.has(uid)) this.#deliver(uid, []);
  }

  #record(event: ContainerEvent, status: PodStatus, before: PodRecord | undefined): DeliveredEvent {
    const pod = {
      namespace: status.namespace || (before?.namespace ?? ""),
      name: status.name || (before?.name ?? ""),
      uid: event.uid,
    };
    const message = describeEvent(event, status);
    const entry = this.#deps.journal.record({
      kind: "observation",
      what: event.container === "" ? sandboxEvent[event.type] : event.type,
      message,
      pod,
      ...(event.container === "" ? {} : { container: event.container }),
      ...eventData(event, status),
    });
    return { ...event, entry, message };
  }

  #tellEvents(): void {
    const { isReliable } = this.#trust;
    if (isReliable === this.#evented) return;
    this.#evented = isReliable;
    this.#deps.journal.record({
      kind: "note",
      what: isReliable ? "RuntimeEventsConnected" : "RuntimeEventsLost",
      message: isReliable
        ? "the runtime's event stream is connected"
        : "no runtime events: relisting periodically instead",
    });
    this.#schedule.within(0);
  }
}
