import type { PodUid } from "../base/ids.ts";
import { Emitter } from "../base/emitter.ts";
import type { Pod } from "../api/pod.ts";
import type { ContainerStatus, PodStatus } from "../api/status.ts";
import { invariant } from "../base/invariant.ts";
import type { Json } from "../base/json.ts";
import type { Cause, PodRef, Recorder } from "../journal/entry.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { mergedConditions } from "./merged-conditions.ts";
import { isTerminalPhase } from "./phase.ts";
import { illegalTransition } from "./transitions.ts";

/** A pod's latest status: a greater version is always later, even if the pod was forgotten in between. */
export interface VersionedStatus {
  readonly status: PodStatus;
  /** Counted over all pods; 0 for a status of an earlier run ({@link StatusManager.seed}). */
  readonly version: number;
}

export interface StatusChange extends VersionedStatus {
  readonly pod: PodRef;
  /** Undefined for a pod's first status. */
  readonly previous: PodStatus | undefined;
  readonly cause: Cause;
}

/**
 * Stores the latest status of each pod and notifies listeners. Visible changes (the phase, containers' states) are
 * recorded in the journal with their cause. Only the pod's worker sets its status, so none is overtaken by an older
 * one, and while it has no worker `IgnoredPods` does.
 */
export class StatusManager {
  readonly #journal: Recorder;
  readonly #statuses = new Map<PodUid, VersionedStatus>();
  readonly #changes = new Emitter<StatusChange>();
  readonly #continued = new Emitter<Pick<StatusChange, "pod" | "status">>();
  readonly #removals = new Emitter<PodUid>();
  #lastVersion = 0;

  constructor(journal: Recorder) {
    this.#journal = journal;
  }

  /** The latest status of the pod of that UID; undefined when none. */
  get(uid: PodUid): PodStatus | undefined {
    return this.#statuses.get(uid)?.status;
  }

  /** {@link get} with its version. */
  getVersioned(uid: PodUid): VersionedStatus | undefined {
    return this.#statuses.get(uid);
  }

  /**
   * The status of an earlier run, with others' changes since: the starting point of new ones. A status already made in
   * this run, without the API server, keeps its content and takes over transition times. Listeners are not called.
   */
  seed(uid: PodUid, status: PodStatus): void {
    const before = this.#statuses.get(uid);
    const version = before?.version ?? 0;
    const seeded = before === undefined || version === 0 ? status : following(before.status, status);
    this.#statuses.set(uid, { status: seeded, version });
  }

  /** Whether an earlier run, or someone else, reported the pod as ended, and this run has no status of it yet. */
  hadEnded(uid: PodUid): boolean {
    const known = this.#statuses.get(uid);
    return known?.version === 0 && isTerminalPhase(known.status.phase);
  }

  /** Takes over others' conditions from the API server. True when they changed; listeners are not called. */
  adopt(uid: PodUid, found: PodStatus | undefined): boolean {
    const before = this.#statuses.get(uid);
    if (before === undefined) return false;
    const conditions = mergedConditions(found, before.status);
    if (isSame(before.status.conditions ?? [], conditions)) return false;
    this.#statuses.set(uid, { ...before, status: { ...before.status, conditions } });
    return true;
  }

  /**
   * Stores a status. False when nothing changed, or when the transition is illegal ({@link illegalTransition}): that is
   * recorded in the journal and the status dropped.
   */
  set(pod: Pod, status: PodStatus, cause: Cause): boolean {
    const ref = podRef(pod);
    const { uid } = ref;
    const before = this.#statuses.get(uid);
    if (before !== undefined && isSame(before.status, status)) {
      if (before.version === 0) this.#continued.emit({ pod: ref, status });
      return false;
    }
    const problem = illegalTransition(pod, before?.status, status);
    if (problem !== undefined) {
      this.#journal.record({ kind: "note", what: "StatusRefused", message: problem, pod: ref, cause });
      return false;
    }
    const version = ++this.#lastVersion;
    const last = before?.version ?? 0;
    // Orders two statuses, whoever wrote them.
    invariant("a status's version grows", version > last, () => `${uid}: ${version} after ${last}`);
    if (before !== undefined && before.version > 0) checkSuccessor(uid, before.status, status);
    this.#checkRestarts(uid, before?.status, status);
    this.#statuses.set(uid, { status, version });
    this.#record(ref, before?.status, status, cause);
    this.#changes.emit({ pod: ref, previous: before?.status, status, version, cause });
    return true;
  }

  /** Forgets the pod. */
  remove(uid: PodUid): void {
    if (!this.#statuses.delete(uid)) return;
    this.#removals.emit(uid);
  }

  /** Calls `listener` after each change, in order, until disposed of. It must not throw. */
  onChange(listener: (change: StatusChange) => void): Disposable {
    return this.#changes.on(listener);
  }

  /**
   * Calls `listener`, likewise, when a pod still has the status of an earlier run: that is no change, but the first status
   * of this run. May be called repeatedly.
   */
  onContinued(listener: (first: Pick<StatusChange, "pod" | "status">) => void): Disposable {
    return this.#continued.on(listener);
  }

  /** Calls `listener` with the UID of each forgotten pod, likewise. */
  onRemove(listener: (uid: PodUid) => void): Disposable {
    return this.#removals.on(listener);
  }

  #checkRestarts(uid: PodUid, before: PodStatus | undefined, after: PodStatus): void {
    const counts = new Map(allStatuses(before).map(({ name, restartCount }) => [name, restartCount]));
    for (const { name, restartCount } of allStatuses(after)) {
      const last = counts.get(name) ?? 0;
      // Its logs and status continue the restart count.
      invariant(
        "restart counts never decrease",
        restartCount >= last,
        () => `${uid}/${name}: ${restartCount}, ${last}`,
      );
    }
  }

  #record(pod: PodRef, before: PodStatus | undefined, after: PodStatus, cause: Cause): void {
    if (before?.phase !== after.phase) {
      const message = `the pod is ${after.phase}${after.reason ? `: ${after.reason}` : ""}`;
      const data = {
        ...(before && { from: before.phase }),
        to: after.phase,
        ...(after.reason && { reason: after.reason }),
      };
      this.#journal.record({ kind: "observation", what: "PodPhaseChanged", message, pod, cause, data });
    }
    const known = new Map(allStatuses(before).map((status) => [status.name, status]));
    for (const status of allStatuses(after)) {
      const data = describe(status);
      const last = known.get(status.name);
      if (last !== undefined && isSame(describe(last), data)) continue;
      const message = `container ${status.name} is ${stateText(status)}`;
      this.#journal.record({
        kind: "observation",
        what: "ContainerStateChanged",
        message,
        pod,
        container: status.name,
        cause,
        data,
      });
    }
  }
}

/**
 * A pod's status does not revoke when it started. Its observed generation may decrease: a restored store of the API
 * server has the pod as it was.
 */
function checkSuccessor(uid: string, before: PodStatus, after: PodStatus): void {
  const isSameStart = before.startTime === undefined || after.startTime === before.startTime;
  invariant("a pod starts once", isSameStart, () => `${uid}: ${after.startTime} after ${before.startTime}`);
}

function allStatuses(status: PodStatus | undefined): readonly ContainerStatus[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {};
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses];
}

/** The visible part of a container's status; times and messages are excluded. */
function describe({ state, ready, restartCount, containerID = "" }: ContainerStatus): { readonly [key: string]: Json } {
  const always = { ready, restartCount, containerID };
  if (state.running) return { state: "running", ...always };
  if (state.terminated) {
    const { exitCode, reason = "" } = state.terminated;
    return { state: "terminated", reason, exitCode, ...always };
  }
  return { state: "waiting", reason: state.waiting?.reason ?? "", ...always };
}

function stateText({ state, ready }: ContainerStatus): string {
  if (state.running) return ready ? "running and ready" : "running, not ready";
  if (state.terminated) {
    const { exitCode, reason } = state.terminated;
    return `terminated${reason ? `: ${reason}` : ""} (exit code ${exitCode})`;
  }
  const { reason, message } = state.waiting ?? {};
  // A back-off repeats the exit before it, with a changing time.
  const why = reason === "CrashLoopBackOff" ? [reason] : [reason, message].filter(Boolean);
  return ["waiting", ...why].join(": ");
}

/** Both come from the same generator, so equal ones have their keys in the same order. */
function isSame(a: object, b: object): boolean {
  return textOf(a) === textOf(b);
}

/** Statuses are immutable: one that is compared with many is serialized once. */
const texts = new WeakMap<object, string>();

function textOf(value: object): string {
  let text = texts.get(value);
  if (text === undefined) {
    text = JSON.stringify(value);
    texts.set(value, text);
  }
  return text;
}

/** A status with the times of an earlier one where both are equal. */
function following(status: PodStatus, earlier: PodStatus): PodStatus {
  const conditions = (status.conditions ?? []).map((condition) => {
    const known = earlier.conditions?.find(({ type }) => type === condition.type);
    if (known === undefined || known.status !== condition.status) return condition;
    return { ...condition, lastTransitionTime: known.lastTransitionTime };
  });
  return { ...status, conditions, ...(earlier.startTime !== undefined && { startTime: earlier.startTime }) };
}
