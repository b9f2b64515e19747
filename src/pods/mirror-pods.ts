import { fullName } from "../api/full-name.ts";
import { ApiError, askedPauseMs, isApiError } from "../api-client/api-error.ts";
import type { ApiClient } from "../api-client/client.ts";
import type { Pod } from "../api/pod.ts";
import { isMirrorPod, isStaticPod } from "../api/pod-kind.ts";
import { onAbort } from "../base/abort.ts";
import { BackOff } from "../base/back-off.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Recorder } from "../journal/entry.ts";
import { perform } from "../journal/perform.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { type ApiPod, apiPods } from "../sources/api-pod.ts";
import {
  creationKey,
  isMirrorOf,
  keyOf,
  leavingNames,
  type MirrorAction,
  mirrorActions,
  mirrorOf,
  type OwnStaticPod,
  podOf,
} from "./mirror-actions.ts";

export interface MirrorPodDependencies {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly journal: Recorder;
  readonly log: Logger;
  readonly nodeName: string;
  /** Undefined until the node is registered. */
  readonly nodeUid: () => string | undefined;
  /** The desired static pods. */
  readonly statics: () => readonly Pod[];
  /** Static pods on the node. {@link MirrorPods.wake} reports a removal. */
  readonly own: () => readonly OwnStaticPod[];
  /** Whether all manifests have been read and {@link own} includes pods of earlier runs. */
  readonly allKnown: () => boolean;
}

/** After a failure, and as a periodic resync. */
const retryMs = 5000;
const lookMs = 60_000;
/** A slower request delays no other mirror pod. */
const slowMs = 2000;
/** By then the watch has reported the creation or deletion. An assumption never lasts longer. */
const expectedMs = 30_000;
/** Between recreations of a mirror pod whose status the server rejects. */
const firstReplacementMs = 60_000;
const longestReplacementMs = 300_000;

/** Manages the mirror pods of static pods. Nothing that happens to a mirror pod affects its static pod. */
export class MirrorPods {
  readonly #deps: MirrorPodDependencies;
  readonly #mirrors = new Map<PodUid, ApiPod>();
  /** Created but not seen by the watch yet: until when (monotonic ms), by full name. */
  readonly #expected = new Map<string, number>();
  /** Deleted but not seen by the watch yet: until when (monotonic ms), by UID. */
  readonly #deleted = new Map<PodUid, number>();
  readonly #refused = new Set<PodUid>();
  /** By the static pod's UID. */
  readonly #replacements = new BackOff(firstReplacementMs, longestReplacementMs);
  /** UIDs of static pods whose mirror pods were recreated without success, already logged. */
  readonly #inVain = new Set<string>();
  /** The last logged failure of an action, by {@link keyOf}: the same failure is logged once. */
  readonly #reportedErrors = new Map<string, string>();
  /** Until when the server requests a pause (monotonic ms), by {@link keyOf}. */
  readonly #pauses = new Map<string, number>();
  /** Actions in progress, by {@link keyOf}. */
  readonly #underWay = new Set<string>();
  readonly #wait: WakeableWait;
  #known = false;

  constructor(deps: MirrorPodDependencies) {
    this.#deps = deps;
    this.#wait = new WakeableWait(deps.clock, "the next check of mirror pods");
  }

  /** The number of mirror pods that the API server has of this node. */
  get count(): number {
    return this.#mirrors.size;
  }

  /** Static pods, or the state of the node, changed. */
  wake(): void {
    this.#wait.wake();
  }

  podSeen(pod: ApiPod): void {
    if (!isMirrorPod(pod)) return;
    this.#mirrors.set(pod.metadata.uid, pod);
    this.#expected.delete(fullName(pod.metadata));
    this.wake();
  }

  podGone(pod: ApiPod): void {
    this.#refused.delete(pod.metadata.uid);
    this.#deleted.delete(pod.metadata.uid);
    if (this.#mirrors.delete(pod.metadata.uid)) this.wake();
    if (isMirrorPod(pod) || !this.#reportedErrors.has(creationKey(pod))) return;
    // It had the name of a static pod.
    this.#expected.delete(fullName(pod.metadata));
    this.wake();
  }

  /**
   * The mirror pod shows an earlier instance of its pod, and the server rejects the transition. It is recreated, unless
   * that was just tried: the next rejection triggers it again.
   */
  refused(uid: PodUid): void {
    const mirror = this.#mirrors.get(uid);
    const pod = mirror && this.#deps.statics().find((other) => isMirrorOf(mirror, other));
    if (pod === undefined || this.#refused.has(uid)) return;
    const nowMs = this.#deps.clock.monotonic();
    for (const expired of this.#replacements.gc(nowMs)) this.#inVain.delete(expired);
    const own = pod.metadata.uid;
    if (this.#replacements.isInBackOffSinceUpdate(own, nowMs)) {
      this.#tellInVain(pod);
      return;
    }
    this.#replacements.next(own, nowMs, nowMs);
    this.#refused.add(uid);
    this.wake();
  }

  podsKnown(): void {
    this.#known = true;
    this.wake();
  }

  /** Reconciles mirror pods until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const good = await this.#reconcile(signal);
      await this.#wait.for(good ? lookMs : retryMs, signal);
    }
  }

  /** False when a retry is needed. */
  async #reconcile(signal: AbortSignal): Promise<boolean> {
    if (!this.#known) return true;
    const [statics, allKnown] = [this.#deps.statics(), this.#deps.allKnown()];
    const leaving = leavingNames(this.#deps.own(), statics);
    const actions = mirrorActions(statics, [...this.#mirrors.values()], allKnown, this.#refused, leaving);
    const keys = new Set(actions.map(keyOf));
    for (const key of this.#reportedErrors.keys()) if (!keys.has(key)) this.#reportedErrors.delete(key);
    // An action that must wait may become unnecessary and necessary again meanwhile.
    const nowMs = this.#deps.clock.monotonic();
    for (const [key, untilMs] of this.#pauses) if (untilMs <= nowMs) this.#pauses.delete(key);
    for (const [key, untilMs] of this.#deleted) if (untilMs <= nowMs) this.#deleted.delete(key);
    const due = actions.filter((action) => {
      if (this.#underWay.has(keyOf(action))) return false;
      // Deleting the Node deletes its mirror pods; they return with it.
      if (action.kind === "create" && this.#deps.nodeUid() === undefined) return false;
      return action.kind === "create" ? !this.#isExpected(action.pod) : !this.#deleted.has(action.mirror.metadata.uid);
    });
    const isDone = await this.#actOn(due, signal);
    return isDone && this.#underWay.size === 0 && allKnown && leaving.size === 0;
  }

  /** True when everything was done in time. Slow actions continue in the background. */
  async #actOn(actions: readonly MirrorAction[], signal: AbortSignal): Promise<boolean> {
    const { promise: slow, resolve } = Promise.withResolvers<"slow">();
    const works = actions.map(async (action) => {
      this.#underWay.add(keyOf(action));
      const isDone = await this.#act(action, signal);
      this.#underWay.delete(keyOf(action));
      return isDone;
    });
    const all = Promise.all(works);
    using _slow = this.#deps.clock.timer("slow mirror pods", slowMs, () => resolve("slow"));
    using _abort = onAbort(signal, () => resolve("slow"));
    const results = await Promise.race([all, slow]);
    if (results !== "slow") return results.every(Boolean);
    // Otherwise only the next resync would notice its end.
    void all.then(() => this.wake());
    return false;
  }

  #isExpected(pod: Pod): boolean {
    return (this.#expected.get(fullName(pod.metadata)) ?? 0) > this.#deps.clock.monotonic();
  }

  async #act(action: MirrorAction, signal: AbortSignal): Promise<boolean> {
    const { journal, clock, log } = this.#deps;
    // The pause that the server requested.
    if ((this.#pauses.get(keyOf(action)) ?? 0) > clock.monotonic()) return false;
    const pod = podOf(action);
    const { namespace, name } = pod.metadata;
    const what = action.kind === "create" ? "CreateMirrorPod" : "DeleteMirrorPod";
    const message = `${action.kind} the mirror pod`;
    try {
      await perform(journal, clock, { what, message, pod: podRef(pod), cause: action.cause }, () =>
        action.kind === "create" ? this.#create(pod, signal) : this.#delete(pod, signal),
      );
      if (this.#reportedErrors.delete(keyOf(action))) {
        log.info("mirror pod managed again after failures", { namespace, name, action: action.kind });
      }
      return true;
    } catch (error) {
      if (signal.aborted) return true;
      this.#pause(action, error);
      return action.kind === "create" ? await this.#notCreated(action, error, signal) : this.#notDeleted(action, error);
    }
  }

  async #create(pod: Pod, signal: AbortSignal): Promise<void> {
    const { client, clock, nodeName } = this.#deps;
    const uid = this.#deps.nodeUid();
    if (uid === undefined) throw new Error("the node is not registered");
    // The API server has all others, and would run this one besides.
    invariant("a mirror pod shows a static pod", isStaticPod(pod), () => pod.metadata.uid);
    // Set before the watch reports it: it must not be created twice.
    this.#expected.set(fullName(pod.metadata), clock.monotonic() + expectedMs);
    const place = { namespace: pod.metadata.namespace };
    const call = { lane: "status", resource: apiPods, place, signal } as const;
    await client.create(call, mirrorOf(pod, { name: nodeName, uid }));
  }

  async #delete(mirror: Pod, signal: AbortSignal): Promise<void> {
    const { namespace, name, uid } = mirror.metadata;
    // It goes without a grace.
    invariant("only a mirror pod is deleted for a static pod", isMirrorPod(mirror), () => uid);
    const call = { lane: "status", resource: apiPods, place: { namespace, name }, signal } as const;
    await this.#deps.client.delete(call, { gracePeriodSeconds: 0, preconditions: { uid } });
    this.#isDeleted(uid);
  }

  /** Unless the watch has already reported it: it must not be deleted twice. */
  #isDeleted(uid: PodUid): void {
    if (this.#mirrors.has(uid)) this.#deleted.set(uid, this.#deps.clock.monotonic() + expectedMs);
  }

  /** False when a retry is due soon; what needs a person's action is retried after a minute. */
  async #notCreated(action: MirrorAction, error: unknown, signal: AbortSignal): Promise<boolean> {
    const pod = podOf(action);
    const isTaken = isApiError(error, "AlreadyExists");
    const holder = isTaken ? await this.#holder(action, signal) : "nobody";
    // The watch will report it.
    if (holder === "its mirror") return true;
    const forPeople = holder === "another pod" || isApiError(error, "NotFound");
    if (!forPeople) this.#expected.delete(fullName(pod.metadata));
    // The holder of the name is gone, or could not be looked up: the next try says more.
    if (!isTaken || holder === "another pod") this.#tell(action, error);
    return forPeople;
  }

  #notDeleted(action: MirrorAction, error: unknown): boolean {
    // It is already gone, or its name is taken by another: the watch will report it.
    if (isApiError(error, "NotFound", "Conflict")) {
      this.#isDeleted(podOf(action).metadata.uid);
      return true;
    }
    this.#tell(action, error);
    return false;
  }

  /** The owner of a static pod's name at the API server. */
  async #holder(action: MirrorAction, signal: AbortSignal): Promise<"its mirror" | "another pod" | "nobody"> {
    const { namespace, name } = podOf(action).metadata;
    try {
      const call = { lane: "status", resource: apiPods, place: { namespace, name }, signal } as const;
      const found = await this.#deps.client.get(call);
      return isMirrorPod(found) && found.spec.nodeName === this.#deps.nodeName ? "its mirror" : "another pod";
    } catch (error) {
      this.#pause(action, error);
      // A node may only read its own pods.
      return isApiError(error, "Forbidden") ? "another pod" : "nobody";
    }
  }

  #pause(action: MirrorAction, error: unknown): void {
    this.#pauses.set(keyOf(action), this.#deps.clock.monotonic() + askedPauseMs(error));
  }

  #tellInVain({ metadata: { namespace, name, uid } }: Pod): void {
    if (this.#inVain.has(uid)) return;
    this.#inVain.add(uid);
    const reason =
      "the mirror pod shows a terminal phase that the static pod has not reached, even after its recreation";
    const wait = { retryMs: this.#replacements.get(uid) };
    this.#deps.log.warn("API server still rejects the status of a mirror pod", { namespace, name, reason, ...wait });
  }

  #tell(action: MirrorAction, error: unknown): void {
    const { namespace, name } = podOf(action).metadata;
    const cause = errorMessage(error);
    if (this.#reportedErrors.get(keyOf(action)) === cause) return;
    this.#reportedErrors.set(keyOf(action), cause);
    const wait = { retryMs: Math.max(retryMs, askedPauseMs(error)) };
    const problem = action.kind === "create" ? "cannot create a mirror pod" : "cannot delete a mirror pod";
    this.#deps.log.warn(problem, { namespace, name, error: cause, ...wait, ...adviceOn(error, namespace) });
  }
}

/** What people can do about a rejected mirror pod; nothing if the request itself failed. Pure. */
function adviceOn(error: unknown, namespace: string): { readonly reason?: string; readonly remedy?: string } {
  if (isApiError(error, "AlreadyExists")) {
    const remedy = "delete that pod, or rename the static pod or move it to another namespace";
    return { reason: "its name is taken by a pod that is not its mirror", remedy };
  }
  if (isApiError(error, "NotFound")) {
    return { reason: "its namespace does not exist", remedy: `create the namespace ${namespace}` };
  }
  if (!(error instanceof ApiError)) return {};
  return { reason: "the API server rejects it", remedy: "fix what the error names; the static pod keeps running" };
}
