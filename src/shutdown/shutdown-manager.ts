import { Emitter } from "../base/emitter.ts";
import { errorMessage } from "../base/errors.ts";
import { withDeadline } from "../base/deadline.ts";
import type { StartUp } from "../base/start-up.ts";
import { WakeableWait } from "../base/wakeable-wait.ts";
import type { Pod } from "../api/pod.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { Cause, Recorder } from "../journal/entry.ts";
import type { AdmissionHandler } from "../pods/admission.ts";
import type { PodKiller } from "../pods/pod-killer.ts";
import type { PodWorker } from "../pods/pod-worker.ts";
import type { PodWorkers } from "../pods/pod-workers.ts";
import type { WorkerView } from "../pods/worker-dependencies.ts";
import type { WorkerState } from "../pods/worker-state.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { LoginManager, LoginSession } from "../ports/login-manager.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { terminated } from "./ending.ts";
import { endGroup } from "./group-end.ts";
import { type InhibitorDependencies, inhibitShutdown } from "./inhibitor.ts";
import { type BegunGroup, elapsedMs, groupOf, requestedMs, type ShutdownPeriod } from "./periods.ts";
import type { ShutdownRecord, ShutdownTimes, StoredShutdown } from "./shutdown-record.ts";

export interface ShutdownDependencies extends InhibitorDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly journal: Recorder;
  readonly login: LoginManager;
  readonly record: ShutdownRecord;
  /** Receives the times of the last graceful shutdown. */
  readonly onTimes: (times: ShutdownTimes) => void;
}

/** The parts of the kubelet that a shutdown needs. */
export interface ShutdownServices {
  readonly pods: { list(): readonly { readonly view: WorkerView }[]; get(uid: string): Pod | undefined };
  readonly workers: Pick<PodWorkers, "list" | "returning" | "wake">;
  /** At "allKnown" the pods include those of earlier runs. */
  readonly startUp: Pick<StartUp, "has" | "when">;
  readonly killer: Pick<PodKiller, "kill">;
  /** Restarts an ended pod under its UID. */
  readonly restart: (pod: Pod, cause: Cause) => void;
}

const firstRetryMs = 1000;
const longestRetryMs = 60_000;
/** The start waits this long for the login manager. */
const firstLookMs = 3000;
const nodeIsShuttingDown = "node is shutting down";
const refusal = { reason: "NodeShutdown", message: "Pod was rejected as the node is shutting down." } as const;

/** Static pods that an earlier shutdown ended are looked for this often and this long, at most until all pods are known. */
const restartLookMs = 1000;
const restartLimitMs = 600_000;
/** A run that starts during a shutdown waits this long until all pods are known. */
const knownLimitMs = 10_000;

/** An announced shutdown. */
interface Shutdown {
  readonly cause: Cause;
  /** Announced before this run, or unheard by it. */
  readonly wasMissed: boolean;
  readonly stop: AbortController;
  /** Ends the pods; undefined: not started. */
  work?: Promise<void>;
}

/**
 * Ends the node's pods before the machine shuts down (upstream's node shutdown manager): delays the shutdown by an
 * inhibitor lock of the login manager, rejects new pods, ends the existing ones group by group, and releases the lock.
 * A cancelled shutdown spares pods that have not been ended yet.
 */
export class ShutdownManager {
  readonly #deps: ShutdownDependencies;
  readonly #periods: readonly ShutdownPeriod[];
  /** For the node's Ready condition. */
  readonly node: Pick<ShutdownManager, "problem" | "onChange"> = this;
  readonly #changes = new Emitter();
  readonly #wait: WakeableWait;
  #services: ShutdownServices | undefined;
  #shutdown: Shutdown | undefined;
  /** How far an earlier run has come in a shutdown that may still be in progress; undefined once it is known not to be. */
  #earlier: StoredShutdown | undefined;
  #lock: Disposable | undefined;
  /** Restarts what shutdowns of earlier runs ended; undefined: logind has not answered in this run. */
  #restarting: Promise<void> | undefined;
  #isFailing = false;

  constructor(deps: ShutdownDependencies, periods: readonly ShutdownPeriod[]) {
    this.#deps = deps;
    this.#periods = periods;
    this.#wait = new WakeableWait(deps.clock, "the pods of a shutdown group to end");
  }

  readonly admit: AdmissionHandler = () => (this.#shutdown === undefined ? undefined : refusal);

  get problem(): string | undefined {
    return this.#shutdown && nodeIsShuttingDown;
  }

  /** In a shutdown that began before this run nothing starts, also no pod of an earlier run that lost its sandbox. */
  get holdsStarts(): boolean {
    return this.#shutdown?.wasMissed === true;
  }

  onChange(listener: () => void): Disposable {
    return this.#changes.on(listener);
  }

  connect(services: ShutdownServices): void {
    this.#services = services;
  }

  /** A run that starts during a shutdown starts no pods. */
  async load(): Promise<void> {
    const { clock, log, login, record, onTimes } = this.#deps;
    this.#earlier = await record.load();
    onTimes(this.#earlier);
    const limit = new AbortController();
    using _limit = clock.timer("logind's state at the start", firstLookMs, () =>
      limit.abort(new Error(`logind does not answer within ${firstLookMs / 1000} s`)),
    );
    try {
      using session = await login.connect(limit.signal);
      if (await session.isPreparingForShutdown(limit.signal)) this.#announced(true);
      else this.#earlier = undefined;
    } catch (error) {
      this.#isFailing = true;
      log.warn("cannot watch for node shutdowns; pods will not be ended before one", { error: errorMessage(error) });
    }
  }

  /** The pod has released its resources. */
  released(): void {
    this.#wait.wake();
  }

  remove(): void {
    this.#wait.wake();
  }

  /** Watches until the signal aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    for (let retryMs = firstRetryMs; !signal.aborted;) {
      try {
        using session = await this.#deps.login.connect(signal);
        await this.#watch(session, signal, () => (retryMs = firstRetryMs));
        continue;
      } catch (error) {
        if (signal.aborted) break;
        if (!this.#isFailing) log.warn("cannot watch for node shutdowns", { error: errorMessage(error) });
        this.#isFailing = true;
      }
      await clock.sleep("next try to watch for node shutdowns", retryMs, signal).catch(() => {});
      retryMs = Math.min(retryMs * 2, longestRetryMs);
    }
    this.#shutdown?.stop.abort(signal.reason);
    await this.#shutdown?.work;
    await this.#restarting;
    this.#release();
  }

  async #watch(session: LoginSession, signal: AbortSignal, succeeded: () => void): Promise<void> {
    let isPreparing = await session.isPreparingForShutdown(signal);
    if (isPreparing) await this.#forgetOther(session, signal);
    else {
      this.#earlier = undefined;
      isPreparing = !(await this.#takeLock(session, signal));
    }
    succeeded();
    if (this.#isFailing) this.#deps.log.info("watching for node shutdowns");
    this.#isFailing = false;
    if (isPreparing) this.#begin(true);
    else await this.#cancelled();
    this.#restarting ??= this.#restartEnded(signal);
    for await (const begins of session.shutdowns(signal)) {
      if (begins) this.#begin(false);
      // The next session takes a new lock.
      else return await this.#cancelled();
    }
    signal.throwIfAborted();
    throw new Error("the connection to the system bus was lost");
  }

  /** False: a shutdown has begun meanwhile, and cannot be delayed any more. */
  async #takeLock(session: LoginSession, signal: AbortSignal): Promise<boolean> {
    try {
      // Before the old lock is released: there is always one.
      const lock = await inhibitShutdown(this.#deps, session, requestedMs(this.#periods), signal);
      this.#release();
      this.#lock = lock;
      return true;
    } catch (error) {
      if (await session.isPreparingForShutdown(signal)) return false;
      throw error;
    }
  }

  /** From here on pods are rejected. */
  #announced(wasMissed: boolean): Shutdown {
    if (this.#shutdown !== undefined) return this.#shutdown;
    const message = "shutdown manager detected shutdown event";
    const entry = this.#deps.journal.record({ kind: "observation", what: "Shutdown", message });
    const cause: Cause = { code: "Shutdown", message: "the node is shutting down", entry };
    this.#shutdown = { cause, wasMissed, stop: new AbortController() };
    this.#changes.emit();
    return this.#shutdown;
  }

  #begin(wasMissed: boolean): void {
    const shutdown = this.#announced(wasMissed);
    shutdown.work ??= this.#endPods(shutdown, shutdown.stop.signal);
  }

  async #endPods({ cause }: Shutdown, signal: AbortSignal): Promise<void> {
    const { clock, log, record, onTimes } = this.#deps;
    const services = this.#services;
    if (services === undefined) return;
    const { startMs, group: begun } = this.#continued() ?? { startMs: clock.now(), group: undefined };
    onTimes({ startMs, endMs: 0 });
    // Pods are not kept waiting for a slow disk.
    void record.store({ startMs, endMs: 0, group: begun });
    await this.#allKnown(services, signal);
    const last = await this.#endGroups(services, cause, { startMs, group: begun }, signal);
    if (signal.aborted) return;
    const endMs = clock.now();
    await record.store({ startMs, endMs, group: last });
    onTimes({ startMs, endMs });
    log.info("all pods have ended; the node may shut down");
    this.#release();
  }

  /** No shutdown lasts longer than logind waits: an older one was cancelled unseen, and this is another. */
  async #forgetOther(session: LoginSession, signal: AbortSignal): Promise<void> {
    const { startMs } = this.#earlier ?? {};
    if (startMs === undefined) return;
    const ageMs = this.#deps.clock.now() - startMs;
    if (ageMs > (await session.inhibitDelayMaxMs(signal))) this.#earlier = undefined;
  }

  /** The same shutdown in an earlier run, if that had begun to end pods. */
  #continued(): StoredShutdown | undefined {
    const earlier = this.#earlier;
    this.#earlier = undefined;
    return earlier?.group && earlier;
  }

  /** Never rejects: pods that are still unknown are not ended. */
  async #allKnown({ startUp }: ShutdownServices, signal: AbortSignal): Promise<void> {
    const what = "all pods to be known before the node shuts down";
    await withDeadline(this.#deps.clock, what, knownLimitMs, signal, () => startUp.when("allKnown")).catch(() => {});
  }

  /** Resolves to the last group that had pods. */
  async #endGroups(
    services: ShutdownServices,
    because: Cause,
    { startMs, group }: Pick<StoredShutdown, "startMs" | "group">,
    signal: AbortSignal,
  ): Promise<BegunGroup | undefined> {
    const { clock, journal, log, record } = this.#deps;
    const stateOf = ({ metadata: { uid } }: Pod): WorkerState | undefined =>
      services.pods.list().find(({ view }) => view.ref.uid === uid)?.view.state;
    const { workers, killer } = services;
    const predecessorOf = ({ metadata: { uid } }: Pod): PodWorker | undefined => {
      const back = workers.returning(uid);
      return back === undefined || back.end !== undefined ? undefined : workers.list().find((one) => one.uid === uid);
    };
    const deps = { clock, journal, log, killer, stateOf, predecessorOf, wait: this.#wait };
    const assigned = new Set<string>();
    let begun = group;
    for (const index of this.#periods.keys()) {
      // A late pod belongs to the current group.
      const pods = activePods(services).filter(
        (pod) => !assigned.has(pod.metadata.uid) && groupOf(this.#periods, pod) <= index,
      );
      const period = this.#periods[index];
      // Empty groups take no time.
      if (period === undefined || pods.length === 0) continue;
      for (const { metadata } of pods) assigned.add(metadata.uid);
      const usedMs = elapsedMs(this.#periods, index, begun, clock.now());
      const isNext = begun === undefined || period.priority > begun.priority;
      if (isNext) begun = { priority: period.priority, startMs: clock.now() };
      void record.store({ startMs, endMs: 0, group: begun });
      await endGroup(deps, { ...period, pods }, usedMs, because, signal);
      if (signal.aborted) return begun;
    }
    return begun;
  }

  async #cancelled(): Promise<void> {
    const shutdown = this.#shutdown;
    if (shutdown === undefined) return;
    this.#shutdown = undefined;
    shutdown.stop.abort(new Error("the node shutdown was cancelled"));
    await shutdown.work;
    const message = "shutdown manager detected shutdown cancellation";
    const entry = this.#deps.journal.record({ kind: "observation", what: "ShutdownCancelled", message });
    const cause: Cause = { code: "ShutdownCancelled", message: "the node shutdown was cancelled", entry };
    this.#changes.emit();
    for (const { uid } of this.#services?.workers.list() ?? []) this.#services?.workers.wake(uid, cause);
    this.#restartStatics(cause);
  }

  /**
   * A shutdown of an earlier run was cancelled while podwright was down, or the machine restarted without another boot ID
   * (a container, a soft reboot): static pods that it ended start again as they become known. Never rejects.
   */
  async #restartEnded(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const services = this.#services;
    const limitMs = clock.monotonic() + restartLimitMs;
    const cause: Cause = { code: "ShutdownCancelled", message: "the node is not shutting down any more" };
    while (services !== undefined && this.#shutdown === undefined && !signal.aborted) {
      const isLast = services.startUp.has("allKnown") || clock.monotonic() > limitMs;
      this.#restartStatics(cause);
      if (isLast) return;
      await clock.sleep("static pods that an earlier shutdown ended", restartLookMs, signal).catch(() => {});
    }
  }

  /** Nothing else restarts them. */
  #restartStatics(cause: Cause): void {
    for (const pod of endedStatics(this.#services)) {
      this.#deps.log.info("restarting a static pod that a shutdown ended", { ...podRef(pod) });
      this.#services?.restart(pod, cause);
    }
  }

  #release(): void {
    this.#lock?.[Symbol.dispose]();
    this.#lock = undefined;
  }
}

/** Pods that run or are about to. */
function activePods({ pods }: ShutdownServices): Pod[] {
  return pods.list().flatMap(({ view: { ref, state } }) => {
    // A pod that waits for admission is rejected instead.
    const pod = pods.get(ref.uid);
    const isActive = state.kind === "syncing" || state.kind === "terminating";
    return pod !== undefined && isActive ? [pod] : [];
  });
}

/** Static pods that a shutdown has ended or rejected, and that are still wanted. */
function endedStatics(services: ShutdownServices | undefined): Pod[] {
  if (services === undefined) return [];
  const { workers } = services;
  return workers.list().flatMap((worker) => {
    const { state, uid, forgotten } = worker;
    // Of one that was removed meanwhile only the pod that returns under its UID is wanted.
    const back = forgotten ? workers.returning(uid) : undefined;
    const pod = forgotten ? back?.pod : worker.pod;
    const own = state.kind === "terminating" || state.kind === "terminated" ? state.ending : undefined;
    const code = (forgotten ? back?.end : own)?.cause.code;
    const isOurs = code === terminated.reason || code === refusal.reason;
    return pod !== undefined && isOurs && isStaticPod(pod) ? [pod] : [];
  });
}
