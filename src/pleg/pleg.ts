import type { EventChannel } from "../base/event-channel.ts";
import { asError, errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { Places } from "../base/places.ts";
import type { StartUp } from "../base/start-up.ts";
import { TransientMap } from "../base/transient-map.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cri } from "../ports/cri.ts";
import type { Logger } from "../ports/log.ts";
import { inspectPod, type LikelyIds, type ListedPod, listPods, noIds } from "../runtime/status/inspect.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { type EventStream, EventTrust } from "./event-trust.ts";
import { computeEvents } from "./events.ts";
import { type DeliveredEvent, LifecycleEvents, podSync } from "./lifecycle-events.ts";
import type { Observation, PodCache } from "./pod-cache.ts";
import { likelyIds, type PodRecords, recordOf, recordOfListing, sameRecord } from "./pod-records.ts";
import { RelistOutcome } from "./relist-outcome.ts";
import { RelistSchedule } from "./relist-schedule.ts";

export interface PlegConfig {
  /** Relist interval without a working event stream: 1 s (genericPlegRelistPeriod). */
  readonly relistPeriodMs: number;
  /** Relist interval with reliable events: relisting only verifies. */
  readonly eventedRelistPeriodMs: number;
  /** Capacity of the event channel: 1000. */
  readonly channelCapacity: number;
  /** Concurrent inspections. One that the runtime does not answer releases its slot after a while. */
  readonly inspections: number;
}

export interface PlegDependencies {
  readonly clock: Clock;
  readonly cri: Cri;
  readonly cache: PodCache;
  /** Advanced after the first relist. */
  readonly startUp: Pick<StartUp, "reach">;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly observer?: Observer | undefined;
}

/** An inspection takes milliseconds; a busy runtime must not get all requests at once. */
const slowInspectionMs = 5000;
/** Upstream's relist interval: by then an action is done, or so slow that an intermediate inspection pays off. */
const soonMs = 1000;

interface NamedIds extends LikelyIds {
  readonly sandboxes: Set<string>;
  readonly containers: Set<string>;
}

/** The inspection state of one pod. */
interface Inspection {
  /** Requested while it ran: inspect again. */
  again: boolean;
  /** An event is awaited even if nothing changed. */
  wanted: boolean;
}

/**
 * The Pod Lifecycle Event Generator: detects what happens to pods in the runtime, maintains the pod cache, and emits
 * events.
 *
 * One writer: only an inspection changes the cache and the records, one at a time for a pod, numbered in the order of
 * their start. Everything else (a listing that differs, a runtime event, a worker that has acted) is a hint that
 * triggers an inspection. So hints may be late, duplicate, reordered or lost; a relist catches up.
 *
 * Unlike upstream's, a relist never waits for an inspection: a pod that hangs the runtime delays no other, and an event
 * that found the channel full stays with its pod and is retried.
 */
export class Pleg {
  /** Monotonic ms since when a relist is due. */
  readonly beganMs: number;
  readonly #deps: PlegDependencies;
  readonly #config: PlegConfig;
  readonly #records: PodRecords = new Map();
  #listed: ReadonlyMap<PodUid, ListedPod> = new Map();
  readonly #inspections = new Map<PodUid, Inspection>();
  /** IDs named by runtime events since the pod's last inspection. */
  readonly #named = new Map<PodUid, NamedIds>();
  readonly #afresh = new Set<PodUid>();
  /** Deferred inspections ({@link requestInspectSoon}); any other inspection of the pod replaces them. */
  readonly #soon = new TransientMap<PodUid, Disposable>();
  /** Pods that their workers are stopping ({@link ending}). */
  readonly #ending = new Set<PodUid>();
  /** Pods whose last inspection failed: the earlier status stays valid, and the next relist retries. */
  readonly #unseen = new Set<PodUid>();
  readonly #events: LifecycleEvents;
  readonly #places: Places;
  #observation: Observation = 0;
  readonly #outcome: RelistOutcome;
  readonly #trust = new EventTrust();
  /** The last reported state. */
  #evented = false;
  readonly #schedule: RelistSchedule;
  #signal: AbortSignal | undefined;

  constructor(deps: PlegDependencies, config: PlegConfig) {
    this.#deps = deps;
    this.#config = config;
    this.beganMs = deps.clock.monotonic();
    this.#events = new LifecycleEvents(deps.journal, config.channelCapacity);
    this.#schedule = new RelistSchedule(deps.clock);
    this.#outcome = new RelistOutcome(deps);
    const { inspections: limit } = config;
    this.#places = new Places(deps, { kind: "an inspection", limit, patienceMs: slowInspectionMs });
  }

  /** Lifecycle events for the sync loop. */
  get events(): EventChannel<DeliveredEvent> {
    return this.#events.channel;
  }

  /** Relists until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    while (!signal.aborted) {
      await this.relist(signal);
      const verifies = this.#evented && !this.#outcome.isFailing;
      this.#schedule.within(verifies ? this.#config.eventedRelistPeriodMs : this.#config.relistPeriodMs);
      await this.#schedule.pause(signal);
    }
  }

  /** The number of the latest observation: effects before this call are visible in those with a higher one. */
  now(): Observation {
    return this.#observation;
  }

  /** Monotonic ms of the last successful relist; undefined before the first. Health checks use its age. */
  get lastRelistMs(): number | undefined {
    return this.#outcome.lastMs;
  }

  /** Events that found the channel full so far. They were retried. */
  get discarded(): number {
    return this.#events.discarded;
  }

  /** True while the runtime's event stream is reliable, and relisting only verifies. */
  get evented(): boolean {
    return this.#evented;
  }

  /** Sets the state of the runtime's event stream; without a reliable one, relists are frequent again at once. */
  setEvents(stream: EventStream): void {
    this.#trust.set(stream);
    this.#tellEvents();
  }

  /** Someone found the runtime away: relist soon, and report its return ({@link onRecovered}). */
  awaitAnswer(): void {
    this.#outcome.awaitAnswer(this.#observation);
    this.#schedule.within(this.#config.relistPeriodMs);
  }

  /** Calls back when the runtime answers again after an outage, until disposed of. */
  onRecovered(listener: (cause: Cause) => void): Disposable {
    return this.#outcome.onRecovered(listener);
  }

  /** A hint that the pod may have changed: inspects it immediately. */
  hint(uid: PodUid): void {
    if (this.#ending.has(uid)) this.requestInspectSoon(uid);
    else this.#inspect(uid, false);
  }

  /** Until disposed of, the pod's worker stops its containers; its inspection afterwards replaces others. */
  ending(uid: PodUid): Disposable {
    this.#ending.add(uid);
    return { [Symbol.dispose]: () => void this.#ending.delete(uid) };
  }

  /**
   * A hint about a change that nothing waits for: the next relist catches it, at the interval without runtime events.
   * However many such hints there are, they cost one relist.
   * @param named the IDs that the next inspection of the pod is likely to find
   */
  hintThatCanWait(uid: PodUid, named?: { readonly sandbox: string; readonly id: string }): void {
    if (named !== undefined) this.#name(uid, named);
    this.#schedule.within(this.#config.relistPeriodMs);
  }

  /** Like a hint, and a `PodSync` event is emitted even if nothing changed (upstream's RequestReinspect). */
  requestInspect(uid: PodUid): void {
    this.#inspect(uid, true);
  }

  /** Like {@link requestInspect}, after a removal: only listed IDs are queried. */
  requestInspectAfresh(uid: PodUid): void {
    this.#afresh.add(uid);
    this.#inspect(uid, true);
  }

  /**
   * Like {@link requestInspect}, for a pod with work in progress: its next step probably requests an inspection of its
   * own, which replaces this one.
   */
  requestInspectSoon(uid: PodUid): void {
    if (this.#soon.has(uid)) return;
    this.#deps.cache.markStale(uid, this.#observation);
    this.#soon.set(
      uid,
      this.#deps.clock.timer("a deferred inspection", soonMs, () => this.#inspect(uid, true)),
    );
  }

  /** A deferred inspection is awaited now: do it. */
  expedite(uid: PodUid): void {
    if (this.#soon.has(uid)) this.#inspect(uid, true);
  }

  /** True when the runtime had the pod at the last relist or inspection. */
  isListed(uid: PodUid): boolean {
    return this.#listed.has(uid) || this.#records.has(uid);
  }

  /** True when something of the pod ran at the last relist. */
  ran(uid: PodUid): boolean {
    const states = recordOfListing(this.#listed.get(uid))?.containers.values() ?? [];
    return [...states].some(({ state }) => state === "running");
  }

  /** UIDs of all pods that the runtime had at the last relist or inspection. */
  get listed(): PodUid[] {
    return [...this.#listed.keys()];
  }

  /** UIDs of the pods of that name that the runtime had at the last relist or inspection. */
  podsNamed(namespace: string, name: string): PodUid[] {
    return [...this.#listed].filter(([, pod]) => pod.namespace === namespace && pod.name === name).map(([uid]) => uid);
  }

  /** One relist: pods that differ from their record, or have a pending event, are inspected. */
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
      else this.#events.redeliver(uid);
    }
    this.#deps.cache.updateTime(observed);
    this.#deps.startUp.reach("listed");
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

  /** Never rejects: a failed inspection is stored as the pod's error, and the next relist or hint retries. */
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
      this.#deps.cache.set(uid, last, asError(error), observed);
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
    const changes = computeEvents(uid, before, gone ? undefined : now);
    const events = changes.map((event) => this.#events.record(event, status, before));
    if (events.length > 0 && before !== undefined) {
      this.#trust.changed();
      this.#tellEvents();
    }
    this.#events.deliver(uid, events.length === 0 && wanted ? [podSync(uid)] : events);
  }

  #forget(uid: PodUid): void {
    this.#records.delete(uid);
    this.#listed = new Map([...this.#listed].filter(([other]) => other !== uid));
  }

  #tellEvents(): void {
    const { isReliable } = this.#trust;
    if (isReliable === this.#evented) return;
    this.#evented = isReliable;
    this.#deps.journal.record({
      kind: "note",
      what: isReliable ? "RuntimeEventsConnected" : "RuntimeEventsLost",
      message: isReliable ? "the runtime's event stream works" : "no runtime events: relisting periodically instead",
    });
    this.#schedule.within(0);
  }
}
