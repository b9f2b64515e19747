import { fullName } from "../api/full-name.ts";
import { ApiError, askedPauseMs, isApiError, isOtherUid } from "../api-client/api-error.ts";
import { isNewer } from "../api-client/resource-version.ts";
import type { ApiClient } from "../api-client/client.ts";
import { isMirrorPod } from "../api/pod-kind.ts";
import type { PodStatus } from "../api/status.ts";
import { onAbort } from "../base/abort.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import { TransientList } from "../base/transient-list.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { type ActionInput, perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { Annotation } from "../runtime/config/labels.ts";
import { type ApiPod, apiPods } from "../sources/api-pod.ts";
import type { StatusChange, StatusManager } from "./status-manager.ts";
import { difference, failuresOf, has, newEntry, type StatusEntry } from "./status-entry.ts";
import { StaticNames } from "./static-names.ts";
import { StatusNews } from "./status-news.ts";
import { isPartOf, rankOf, statusEchoes, statusPatch } from "./status-write.ts";
import { showsEarlierLife } from "./transitions.ts";
import { WritePlaces } from "./write-places.ts";

export interface StatusSyncDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly statuses: StatusManager;
  /** Others changed conditions of a pod: their dependents must be synced. */
  readonly conditionsChanged: (uid: PodUid, cause: Cause) => void;
  /** The server rejects the status of the mirror pod of that UID: it shows an earlier instance of its pod. */
  readonly mirrorRefused: (uid: PodUid) => void;
  /** The hash of a static pod's manifest, which identifies its mirror pod; undefined: no such static pod. */
  readonly manifestHash: (uid: PodUid) => string | undefined;
}

interface Write {
  readonly kind: "patch" | "delete";
  readonly rank: number;
}

const firstRetryMs = 500;
const longestRetryMs = 10_000;
/** A rejected status may be accepted later: a policy may be corrected. */
const firstRefusalMs = 10_000;
const longestRefusalMs = 60_000;
/** A starting pod changes its status several times in a row: changes that nobody waits for are combined. */
const detailsMs = 40;
/** Foreign changes of our status are corrected, but not in a fight. */
const reconcileMs = 10_000;
/**
 * A "not found" may come from the wrong server (a load balancer between clusters): nothing is forgotten before the
 * watch reports the deletion.
 */
const missingRetryMs = 120_000;

/**
 * Sends pod statuses to the API server (upstream's statusManager): the latest of each, in order within a pod and
 * concurrently otherwise, without reading the pod before, deletions and readiness changes first, and pods whose last
 * write failed last. A deleted pod is removed from the server (grace period 0, with UID precondition) once it has
 * stopped and its last status was sent, or rejected. Statuses of static pods go to their mirror pods.
 */
export class StatusSync {
  readonly #deps: StatusSyncDependencies;
  readonly #news: StatusNews;
  readonly #entries = new Map<PodUid, StatusEntry>();
  /** UIDs of the mirror pods, by full name. */
  readonly #mirrors = new Map<string, PodUid>();
  readonly #statics = new StaticNames();
  readonly #dirty = new Set<PodUid>();
  readonly #places: WritePlaces;
  readonly #writes = new TransientList<Promise<void>>();
  #signal: AbortSignal | undefined;
  #timer: Disposable | undefined;

  constructor(deps: StatusSyncDependencies) {
    this.#deps = deps;
    this.#news = new StatusNews(deps.clock, deps.log);
    this.#places = new WritePlaces(deps.clock, () => this.#pump());
  }

  /** Pods with unsent statuses, for diagnostics. */
  get waiting(): number {
    return this.#dirty.size;
  }

  /** Writes until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const ended = Promise.withResolvers<void>();
    using _changes = this.#deps.statuses.onChange((change) => this.#changed(change));
    using _removals = this.#deps.statuses.onRemove((uid) => this.#statics.remove(uid));
    using _end = onAbort(signal, () => ended.resolve());
    this.#signal = signal;
    this.#pump();
    await ended.promise;
    await Promise.all(this.#writes);
    this.#timer?.[Symbol.dispose]();
  }

  /** The server's pod is as given. A status of an earlier run is the starting point. */
  podSeen(pod: ApiPod): void {
    const { uid, resourceVersion } = pod.metadata;
    const mirror = isMirrorPod(pod);
    if (mirror) this.#mirrors.set(fullName(pod.metadata), uid);
    const entry = this.#entries.get(uid);
    if (!mirror && entry === undefined && pod.status !== undefined) this.#deps.statuses.seed(uid, pod.status);
    if (entry === undefined) {
      this.#entries.set(uid, newEntry(pod));
      if (mirror) this.#keepTimes(pod);
    } else {
      entry.pod = pod;
      this.#isThere(entry);
      if (isNewer(resourceVersion, entry.foundVersion)) {
        // Still there, or it would not change: perhaps held by finalizers.
        entry.deleted = false;
        entry.found = pod.status;
        entry.foundVersion = resourceVersion;
        if (!mirror) this.#adopt(uid, pod.status);
        this.#reconcile(entry);
      }
    }
    this.#touch(uid);
  }

  /** Readiness gates are set at the API server. Before this run's first status, all conditions belong to others. */
  #adopt(uid: PodUid, status: PodStatus | undefined): void {
    const { statuses, conditionsChanged } = this.#deps;
    const isNews = statuses.adopt(uid, status);
    if (status !== undefined && statuses.getVersioned(uid)?.version === 0) statuses.seed(uid, status);
    if (!isNews) return;
    conditionsChanged(uid, {
      code: "ConditionsChanged",
      message: "conditions of the pod were changed by someone else",
    });
  }

  podGone(pod: ApiPod): void {
    const { uid } = pod.metadata;
    this.#entries.delete(uid);
    this.#dirty.delete(uid);
    this.#news.ended(uid);
    const name = fullName(pod.metadata);
    if (this.#mirrors.get(name) === uid) this.#mirrors.delete(name);
  }

  /** The pod of that UID has stopped and released its resources. */
  released(uid: PodUid): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined || entry.released) return;
    entry.released = true;
    this.#touch(uid);
  }

  #changed({ pod, previous, cause }: StatusChange): void {
    const isOwn = this.#entries.has(pod.uid);
    if (!isOwn && this.#deps.manifestHash(pod.uid) !== undefined) this.#statics.add(fullName(pod), pod.uid);
    const uid = isOwn ? pod.uid : this.#mirrors.get(fullName(pod));
    const entry = uid === undefined ? undefined : this.#entries.get(uid);
    if (uid === undefined || entry === undefined) return;
    if (!isOwn && previous === undefined) this.#keepTimes(entry.pod);
    entry.cause = cause;
    if (!this.#dirty.has(uid)) entry.detailsAtMs = this.#deps.clock.monotonic() + detailsMs;
    this.#isThere(entry);
    this.#touch(uid);
  }

  /** News about a pod that the server reported as not found. */
  #isThere(entry: StatusEntry): void {
    entry.notBeforeMs = entry.missingUntilMs ?? entry.notBeforeMs;
    entry.missingUntilMs = undefined;
  }

  /** The transition times of a static pod are known only from its mirror pod. */
  #keepTimes(mirror: ApiPod): void {
    const uid = this.#staticOf(mirror);
    if (uid === undefined || mirror.status === undefined) return;
    if (this.#deps.statuses.get(uid) !== undefined) this.#deps.statuses.seed(uid, mirror.status);
  }

  /** Someone else changed our part of the status. */
  #reconcile(entry: StatusEntry): void {
    const latest = this.#latest(entry);
    if (entry.busy || latest === undefined || latest.version !== entry.sentVersion) return;
    const differs = difference(entry, latest.status);
    if (differs === undefined || differs === entry.refused) return;
    entry.reconcileAtMs ??= this.#deps.clock.monotonic() + reconcileMs;
    entry.cause = { code: "StatusDiffers", message: "the pod's status at the API server differs from the node's" };
  }

  #latest({ pod }: StatusEntry): { readonly status: PodStatus; readonly version: number } | undefined {
    const uid = isMirrorPod(pod) ? this.#staticOf(pod) : pod.metadata.uid;
    const latest = uid === undefined ? undefined : this.#deps.statuses.getVersioned(uid);
    // What an earlier run left counts as the server's own.
    return latest?.version === 0 ? undefined : latest;
  }

  /** The UID of a mirror pod's static pod. During a replacement both have their name, and each has its mirror. */
  #staticOf({ metadata }: ApiPod): PodUid | undefined {
    const hash = metadata.annotations?.[Annotation.configMirror];
    if (hash === undefined) return undefined;
    return this.#statics.named(fullName(metadata)).find((uid) => this.#deps.manifestHash(uid) === hash);
  }

  #touch(uid: PodUid): void {
    if (!this.#entries.has(uid)) return;
    this.#dirty.add(uid);
    this.#pump();
  }

  /** The next status to send for a pod; undefined: none. */
  #next(entry: StatusEntry): Write | undefined {
    const { pod, found, sentVersion } = entry;
    const latest = this.#latest(entry);
    const isDeleted = pod.metadata.deletionTimestamp !== undefined;
    const over = isDeleted && !entry.deleted && !isMirrorPod(pod) && entry.released;
    // An ended pod must not stay because the server rejects its status.
    const again = entry.reconcileAtMs !== undefined && !(over && entry.refusals > 0);
    if (latest !== undefined && (latest.version !== sentVersion || again)) {
      return { kind: "patch", rank: isDeleted ? 0 : rankOf(found, latest.status) };
    }
    return over ? { kind: "delete", rank: 0 } : undefined;
  }

  #dueAtMs(entry: StatusEntry, { kind, rank }: Write): number {
    if (kind === "delete") return entry.notBeforeMs;
    const isNews = this.#latest(entry)?.version !== entry.sentVersion;
    const newsAtMs = rank === 2 ? entry.detailsAtMs : 0;
    return Math.max(entry.notBeforeMs, isNews ? newsAtMs : (entry.reconcileAtMs ?? 0));
  }

  /** Starts as many writes as are allowed, the most urgent first. */
  #pump(): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    const nowMs = this.#deps.clock.monotonic();
    let soonestMs = Number.POSITIVE_INFINITY;
    const due: { readonly entry: StatusEntry; readonly write: Write }[] = [];
    for (const uid of this.#dirty) {
      const entry = this.#entries.get(uid);
      const write = entry && this.#next(entry);
      if (entry === undefined || write === undefined) {
        this.#dirty.delete(uid);
        continue;
      }
      const dueAtMs = this.#dueAtMs(entry, write);
      if (dueAtMs > nowMs) soonestMs = Math.min(soonestMs, dueAtMs);
      else if (!entry.busy) due.push({ entry, write });
    }
    // Stable: among equals, the longest wait goes first.
    const order = due.toSorted((a, b) => failuresOf(a.entry) - failuresOf(b.entry) || a.write.rank - b.write.rank);
    for (const { entry, write } of order) {
      const place = this.#places.take(failuresOf(entry) > 0);
      if (place === undefined) break;
      this.#begin(entry, write.kind, place, signal);
    }
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    if (Number.isFinite(soonestMs)) {
      this.#timer = this.#deps.clock.timer("a pod's status to become due", soonestMs - nowMs, () => this.#pump());
    }
  }

  #begin(entry: StatusEntry, kind: Write["kind"], place: Disposable, signal: AbortSignal): void {
    // Otherwise the earlier of two could arrive last.
    invariant("a pod's status has one write at a time", !entry.busy, () => entry.pod.metadata.uid);
    entry.busy = true;
    const ended = this.#write(entry, kind, signal).finally(() => {
      entry.busy = false;
      place[Symbol.dispose]();
      write[Symbol.dispose]();
      // Others may have written during this write.
      this.#reconcile(entry);
      // It has had its turn: waiting ones come first.
      const { uid } = entry.pod.metadata;
      this.#dirty.delete(uid);
      this.#dirty.add(uid);
      this.#pump();
    });
    const write = this.#writes.add(ended);
  }

  async #write(entry: StatusEntry, kind: Write["kind"], signal: AbortSignal): Promise<void> {
    const version = this.#latest(entry)?.version;
    try {
      if (kind === "patch") await this.#patch(entry, signal);
      else await this.#delete(entry, signal);
      entry.failures = 0;
      entry.missingUntilMs = undefined;
      this.#news.arrived(entry.pod.metadata);
    } catch (error) {
      if (signal.aborted) return;
      const refused = kind === "patch" && error instanceof ApiError && error.code === 422 && !isOtherUid(error);
      if (refused) this.#refused(entry, version, error);
      else this.#failed(entry, error);
    }
  }

  async #patch(entry: StatusEntry, signal: AbortSignal): Promise<void> {
    if (entry.unsure) await this.#ask(entry, signal);
    const latest = this.#latest(entry);
    if (latest === undefined) return;
    const { pod, found, cause } = entry;
    const { uid } = pod.metadata;
    const patch = statusPatch(uid, found, latest.status);
    let left: object | undefined;
    if (patch !== undefined) {
      const { clock, journal, client } = this.#deps;
      const message = `update the pod's status at the API server: ${latest.status.phase}`;
      const action: ActionInput = { what: "PatchPodStatus", message, pod: this.#ref(pod), cause };
      const after = await perform(journal, clock, action, () =>
        client.patch({ ...this.#call(pod, signal, "status"), resource: statusEchoes }, "strategic", patch),
      );
      if (has(entry, after) && !isMirrorPod(pod)) this.#adopt(uid, after.status);
      left = statusPatch(uid, after.status, this.#latest(entry)?.status ?? latest.status);
    }
    const { sentVersion = 0 } = entry;
    const detail = (): string => `${uid}: ${latest.version}, ${sentVersion}`;
    invariant("the API server never receives an older status", latest.version >= sentVersion, detail);
    entry.sentVersion = latest.version;
    entry.reconcileAtMs = undefined;
    entry.refusals = 0;
    entry.refused = isPartOf(left, patch) ? JSON.stringify(left) : undefined;
  }

  /**
   * A patch omits what the server already has, and so would keep a change whose write was wrongly reported as failed.
   */
  async #ask(entry: StatusEntry, signal: AbortSignal): Promise<void> {
    const call = { ...this.#call(entry.pod, signal), resource: statusEchoes };
    const there = await this.#deps.client.get(call);
    if (there.metadata.uid === entry.pod.metadata.uid) has(entry, there);
    entry.unsure = false;
  }

  async #delete(entry: StatusEntry, signal: AbortSignal): Promise<void> {
    const { pod } = entry;
    const { clock, journal, client } = this.#deps;
    const message = "delete the stopped pod at the API server";
    const cause: Cause = { code: "PodReleased", message: "the pod was deleted, and has stopped" };
    const isOver = pod.metadata.deletionTimestamp !== undefined && entry.released;
    // From then on others may take its name and its storage.
    invariant("a pod is deleted at the API server after its resources are released", isOver, () => pod.metadata.uid);
    const options = { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid } };
    await perform(journal, clock, { what: "DeletePod", message, pod: this.#ref(pod), cause }, () =>
      client.delete(this.#call(pod, signal), options),
    );
    entry.deleted = true;
    // If the pod is seen again after this, its next deletion is not urgent.
    entry.notBeforeMs = clock.monotonic() + longestRetryMs;
  }

  /** The next status is sent immediately; this one again later. */
  #refused(entry: StatusEntry, version: number | undefined, error: ApiError): void {
    const { pod } = entry;
    entry.refusals++;
    const retryMs = Math.min(firstRefusalMs * 2 ** (entry.refusals - 1), longestRefusalMs);
    this.#news.invalid(pod.metadata, error, retryMs);
    entry.sentVersion = version;
    entry.reconcileAtMs = this.#deps.clock.monotonic() + retryMs;
    const latest = this.#latest(entry);
    entry.refused = latest && difference(entry, latest.status);
    if (latest === undefined || !isMirrorPod(pod)) return;
    if (showsEarlierLife(pod, entry.found, latest.status)) this.#deps.mirrorRefused(pod.metadata.uid);
  }

  #failed(entry: StatusEntry, error: unknown): void {
    const { clock } = this.#deps;
    // At a conflict others keep changing the pod; at a deletion it may be another pod of its name.
    entry.failures++;
    const nowMs = clock.monotonic();
    const backOffMs = Math.min(firstRetryMs * 2 ** (entry.failures - 1), longestRetryMs);
    const retryMs = Math.max(backOffMs, askedPauseMs(error));
    const retryAtMs = nowMs + retryMs;
    if (isApiError(error, "NotFound") || isOtherUid(error)) {
      // Gone, and another of its name may exist: the watch will report it.
      this.#news.ended(entry.pod.metadata.uid);
      entry.missingUntilMs = retryAtMs;
      entry.notBeforeMs = nowMs + missingRetryMs;
      return;
    }
    entry.missingUntilMs = undefined;
    entry.unsure = !(error instanceof ApiError) || error.code >= 500;
    entry.notBeforeMs = retryAtMs;
    this.#news.failed(entry.pod.metadata, error, retryMs);
  }

  /** The node's pod: for a mirror pod, the static one. */
  #ref(pod: ApiPod): PodRef {
    const own = isMirrorPod(pod) ? this.#staticOf(pod) : undefined;
    return { ...podRef(pod), ...(own !== undefined && { uid: own }) };
  }

  #call({ metadata: { namespace, name } }: ApiPod, signal: AbortSignal, subresource?: string) {
    const place = { namespace, name, ...(subresource !== undefined && { subresource }) };
    return { lane: "status", resource: apiPods, place, signal } as const;
  }
}
