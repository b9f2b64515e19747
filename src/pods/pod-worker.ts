import { isStaticPod } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import type { Cause, PodRef } from "../journal/entry.ts";
import type { Observation } from "../pleg/pod-cache.ts";
import type { DeliveredEvent } from "../pleg/lifecycle-events.ts";
import { gracePeriodSeconds } from "../runtime/actions/grace.ts";
import { hasStopped } from "../runtime/status/remains.ts";
import { computePodActions, isIdle, type PodActions } from "../runtime/actions/pod-actions.ts";
import { hasInstance, type PodStatus } from "../runtime/status/pod-status.ts";
import { actionsContext } from "./actions-context.ts";
import { ActiveDeadline, deadlineExceeded } from "./active-deadline.ts";
import { CalledOff } from "./called-off.ts";
import { endingNow } from "./cut-short.ts";
import { DecisionLog } from "./decision-log.ts";
import { completed, type Ending } from "./ending.ts";
import { operationEvents } from "./operation-events.ts";
import { PodOperations } from "./pod-operations.ts";
import { PodCheckpoint } from "./pod-checkpoint.ts";
import { PodResizing } from "./pod-resize.ts";
import { PodObserver } from "./pod-observer.ts";
import { PodTermination } from "./pod-termination.ts";
import { withoutInstances } from "./post-start-hooks.ts";
import { Pruning } from "./pruning.ts";
import { type Rival, rivalRetryMs, Rivals } from "./rivals.ts";
import { RestartTimes } from "./restart-times.ts";
import { RuntimeOutage } from "./runtime-outage.ts";
import { StartFailures } from "./start-failures.ts";
import type { WorkerDependencies, WorkerView } from "./worker-dependencies.ts";
import { endedResyncDelayMs, resyncDelayMs, retryDelayMs, StepSchedule } from "./step-schedule.ts";
import type { WorkerPlan } from "./worker-plan.ts";
import { WorkerViews } from "./worker-views.ts";
import { checkTransition, terminate, type Terminated, type Terminating, type WorkerState } from "./worker-state.ts";

const resync: Cause = { code: "Resync", message: "periodic resync of the pod" };

interface OwnDependencies extends WorkerDependencies {
  /** Whether a UID is desired again while its previous pod is not removed yet. */
  readonly comesBack: (uid: PodUid) => boolean;
}

/**
 * Drives one pod, identified by its UID, from its first sight to its removal. One step at a time: observe, decide, act;
 * slow work runs as an operation beside the steps, and its end is one more observation. Everything else only wakes the
 * worker; the latest desired state counts (`update`, `terminate`, `forget`).
 */
export class PodWorker {
  readonly ref: PodRef;
  readonly uid: PodUid;
  readonly #deps: OwnDependencies;
  readonly #restarts: RestartTimes;
  readonly #decisions: DecisionLog;
  readonly #activeDeadline: ActiveDeadline;
  readonly #checkpoint: PodCheckpoint;
  readonly #rivals: Rivals;
  readonly #evidence = new Map<string, number>();
  #pod: Pod | undefined;
  /** Cached, because it is read for all pods at each change of one. */
  #isStatic: boolean;
  #state: WorkerState = { kind: "syncing" };
  #forgotten: Cause | undefined;
  readonly #schedule: StepSchedule;
  readonly #observer: PodObserver;
  readonly #pruning: Pruning;
  /** The latest decision, for its waits. */
  #actions: PodActions | undefined;
  readonly #failures = new StartFailures();
  readonly #outage: RuntimeOutage;
  readonly #operations: PodOperations;
  readonly #resizing: PodResizing;
  readonly #termination: PodTermination;
  readonly #views: WorkerViews;
  /** Of {@link run}: operations end with it. */
  #signal: AbortSignal | undefined;
  /** Cancels the current step because the desired state changed. */
  #step = new AbortController();

  constructor(deps: OwnDependencies, ref: PodRef, pod: Pod | undefined, cause: Cause, after: Observation = 0) {
    this.#deps = deps;
    this.ref = ref;
    this.uid = ref.uid;
    this.#pod = pod;
    this.#isStatic = pod !== undefined && isStaticPod(pod);
    this.#observer = new PodObserver(deps, ref, this.uid, after);
    this.#pruning = new Pruning(deps, ref, this.#observer);
    this.#restarts = new RestartTimes(deps.effects.clock, deps.config.maxContainerRestartPeriodMs);
    this.#decisions = new DecisionLog(deps.effects.journal, deps.effects.clock, ref, this.#failures);
    this.#activeDeadline = new ActiveDeadline(deps.effects.clock);
    this.#checkpoint = new PodCheckpoint(deps.checkpoint, this.uid, this.#activeDeadline, this.#restarts);
    const { clock, log } = deps.effects;
    this.#rivals = new Rivals({ ...deps, log }, ref, this.#decisions);
    this.#outage = new RuntimeOutage(clock, deps.pleg);
    this.#schedule = new StepSchedule(clock, `next sync of pod ${ref.namespace}/${ref.name}`, cause);
    this.#resizing = new PodResizing(deps, ref);
    const learners = {
      outage: this.#outage,
      failures: this.#failures,
      restarts: this.#restarts,
      checkpoint: this.#checkpoint,
    };
    const events = operationEvents({
      ...{ ...learners, resizing: this.#resizing, observer: this.#observer },
      retryAtMs: () => this.#after(retryDelayMs),
      wake: (reason) => this.wake(reason),
    });
    this.#operations = new PodOperations(clock, log.child({ ...ref }), events);
    this.#termination = new PodTermination(deps, {
      operations: this.#operations,
      observer: this.#observer,
      checkpoint: this.#checkpoint,
    });
    const shown = { operations: this.#operations, activeDeadline: this.#activeDeadline };
    this.#views = new WorkerViews(deps, { ...learners, ...shown, resizing: this.#resizing, observer: this.#observer });
  }

  get state(): WorkerState {
    return this.#state;
  }

  get pod(): Pod | undefined {
    return this.#pod;
  }

  get isStatic(): boolean {
    return this.#isStatic;
  }

  /** The current knowledge of the pod, including changes after the latest step. */
  get view(): WorkerView {
    return this.#views.current(this);
  }

  /** True for an orphaned pod: it will be removed from the node. */
  get forgotten(): boolean {
    return this.#forgotten !== undefined;
  }

  update(pod: Pod, cause: Cause): void {
    this.#failures.updated(this.#pod, pod, this.#operations.busy.containers);
    this.#pod = pod;
    this.#isStatic = isStaticPod(pod);
    this.wake(cause);
  }

  /** Stops the pod for good. Again with a shorter grace period: shortens it. */
  terminate(asked: Ending): void {
    const waiting = this.#failures.waiting(this.#pod, this.#actions, this.#restarts);
    const ending = endingNow(asked, this.#pod, this.#deps.cache.get(this.uid).status, waiting);
    const to = terminate(this.#state, ending, this.#deps.effects.clock.monotonic());
    if (to === this.#state) return;
    const { cause } = ending;
    this.#enter(to);
    this.#step.abort(new CalledOff(cause));
    this.#pruning.cancel(new CalledOff(cause));
    // What they started is not in the last observation, and has its place in the stop order.
    if (this.#operations.end(new CalledOff(cause)) > 0) this.#observer.acted();
    // Immediately: the next step may have to wait for the runtime, and podwright may be killed before it.
    void this.#checkpoint.stopping(this.#pod, ending);
    this.wake(cause);
  }

  /** No source has the pod any more: once it has stopped, it is removed. */
  forget(cause: Cause): void {
    this.#forgotten ??= cause;
    this.wake(cause);
  }

  queuedBehind(uid: PodUid): void {
    this.#decisions.waitsFor(uid);
  }

  observed(event: DeliveredEvent): void {
    if (event.entry !== 0) this.#evidence.set(event.id, event.entry);
    if (event.type === "PodSync") return;
    this.wake({ code: event.type, message: event.message, entry: event.entry });
  }

  /** An object that the pod refers to changed: a start that failed because of it may succeed now. */
  objectsChanged(cause: Cause): void {
    if (this.#operations.busy.wholePod) this.#failures.outdated();
    else this.#failures.clear();
    this.wake(cause);
  }

  /** The runtime answers again: what failed because of the outage is retried immediately. */
  runtimeAnswers(cause: Cause): void {
    if (!this.#outage.over()) return;
    this.#failures.outageOver();
    this.#resizing.retryNow();
    // The last observation may be a failed one.
    this.#observer.acted();
    this.wake(cause);
  }

  /** Retries everything in back-off at once, on a user's request. */
  retryNow(cause: Cause): void {
    this.#restarts.retryNow();
    this.#failures.retryNow();
    this.#resizing.retryNow();
    this.#deps.runtime.retryNow(this.ref);
    this.wake(cause);
  }

  /** A probe result changed. A dead container fails its probe too: first ask the runtime whether it runs. */
  probed(cause: Cause, failed: boolean): void {
    if (failed) this.#observer.acted();
    this.wake(cause);
  }

  wake(cause: Cause): void {
    this.#schedule.wake(cause);
  }

  /** What the next step would do, based on the latest observation. Changes nothing. */
  async plan(): Promise<WorkerPlan> {
    const { cache, rivals, effects } = this.#deps;
    const { status, error, observed } = cache.get(this.uid);
    const pod = this.#state.kind === "syncing" ? this.#resizing.granted(this.#pod) : undefined;
    const behind = pod !== undefined && status.sandboxes.length === 0 ? (await rivals(this.ref))[0] : undefined;
    const endsAtMs = pod && this.#activeDeadline.lastKnown(pod);
    const isOverdue = endsAtMs !== undefined && endsAtMs <= effects.clock.monotonic();
    const decides = observed > 0 && behind === undefined && !isOverdue && !this.#operations.busy.wholePod;
    return {
      ref: this.ref,
      state: this.#state,
      forgotten: this.forgotten,
      behind,
      overdue: isOverdue ? deadlineExceeded : undefined,
      pendingResize: this.#resizing.view().pending,
      setUpFailure: this.#failures.sandbox?.message,
      underWay: this.#operations.list().map(({ name }) => name),
      stale: observed === 0 ? "not observed yet" : error && errorMessage(error),
      actions: pod !== undefined && decides ? computePodActions(pod, status, this.#context()) : undefined,
    };
  }

  /** Works until the pod is finished or the signal aborts, which changes nothing. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    await this.#checkpoint.load();
    while (this.#state.kind !== "finished") {
      const { kind } = this.#state;
      await this.#schedule.pause(this.#after(kind === "terminated" ? endedResyncDelayMs : resyncDelayMs), signal);
      if (signal.aborted) return;
      this.#step = new AbortController();
      using either = eitherSignal(signal, this.#step.signal);
      try {
        await this.#deps.measured(this.ref, this.#state.kind, this.#advance(either.signal));
      } catch (error) {
        if (signal.aborted) return;
        if (this.#step.signal.aborted) this.#schedule.by(0, this.#schedule.lastCause);
        else this.#failed(error);
      }
    }
  }

  async #advance(signal: AbortSignal): Promise<void> {
    this.#schedule.begin();
    const toRun = (): Pod | undefined => (this.#state.kind === "syncing" ? this.#pod : undefined);
    const status = await this.#observer.observe((seen) => this.#resizing.prepare(toRun(), seen), signal);
    const cause = this.#schedule.takeCause(resync);
    const state = this.#state;
    const shown = withoutInstances(status, this.#operations.inPostStart(this.#pod, status));
    if (this.#pod) this.#deps.probes.observe(this.#pod, shown, state.kind !== "syncing");
    const pod = this.#resizing.granted(this.#pod);
    if (state.kind === "syncing" && pod !== undefined) await this.#sync(pod, status, cause, signal);
    else if (state.kind === "terminating") await this.#terminating(state, status, signal);
    else if (state.kind === "terminated") await this.#terminated(state, status, signal);
    // A stop that arrived meanwhile is handled in the next step: what it canceled may have started something after this
    // observation.
    signal.throwIfAborted();
    if (this.#state.kind !== "finished") this.#views.publish(this, status, this.#actions, cause);
  }

  async #sync(pod: Pod, status: PodStatus, cause: Cause, signal: AbortSignal): Promise<void> {
    const timedOut = this.#activeDeadline.due(pod, status, this.#schedule);
    if (timedOut !== undefined) return this.terminate(timedOut);
    // No decision is possible until the sandbox exists; the operation's end wakes this worker.
    if (this.#operations.busy.wholePod) return;
    // A pod without a sandbox has no operations, so waiting here makes no observation stale.
    if (status.sandboxes.length === 0) {
      const rival = await this.#rivals.next(signal);
      if (rival !== undefined) return this.#waitFor(rival);
      await this.#deps.allocations.saved();
    }
    this.#restarts.observe(status);
    this.#resizing.observe(pod, status);
    for (const id of this.#evidence.keys()) if (!hasInstance(status, id)) this.#evidence.delete(id);
    const context = this.#context();
    const actions = computePodActions(pod, status, context);
    this.#actions = actions;
    this.#failures.decided(actions, context.nowMs);
    this.#deps.recorder?.record({ pod, status, context, actions });
    if (actions.createSandbox !== undefined && this.#deps.holdsStarts()) return;
    this.#decisions.record(actions, cause);
    const upsets = actions.killPod ?? actions.restartAll?.cause;
    if (upsets !== undefined && this.#operations.count > 0) {
      // They cannot succeed: what they work on is being removed.
      this.#operations.abort(new CalledOff(upsets));
      return;
    }
    const { killPod: end, graces } = actions;
    if (end && !actions.createSandbox) return this.terminate(completed(end, gracePeriodSeconds(pod), graces));
    this.#pruning.begin(status, this.#signal);
    // Creating a sandbox prepares the pod and mounts its volumes. Starts in progress keep the resources they were
    // decided with, and are resized with the pod.
    const makesSandbox = actions.createSandbox !== undefined;
    if (!makesSandbox && this.#operations.count === 0) await this.#resizing.settle(pod);
    const isFresh = makesSandbox || (await this.#deps.volumes.refresh(pod, cause, signal));
    // A decision made before a stop must not be carried out after it.
    signal.throwIfAborted();
    if (!isIdle(actions)) this.#act(pod, status, actions);
    if (actions.createSandbox?.attempt === 0) this.#checkpoint.keptByStart(pod);
    await this.#checkpoint.save(pod);
    this.#schedule.byWaits(actions);
    if (this.#resizing.retryAtMs !== undefined) this.#schedule.by(this.#resizing.retryAtMs, resync);
    this.#schedule.by(this.#after(isFresh ? resyncDelayMs : retryDelayMs), resync);
  }

  #waitFor(rival: Rival): void {
    this.#failures.sandboxFailed({ reason: "ContainerCreating", message: rival.message, retryAtMs: 0 }, 0);
    const cause: Cause = { code: "RivalPod", message: `pod ${rival.uid} of the same name still exists` };
    this.#schedule.by(this.#deps.effects.clock.monotonic() + rivalRetryMs, cause);
  }

  #context() {
    const { busy } = this.#operations;
    const resize = this.#resizing.facts(busy.resizing);
    const knowledge = { restarts: this.#restarts, failures: this.#failures, evidence: this.#evidence, resize };
    const { probes, effects } = this.#deps;
    return actionsContext({ ...knowledge, probes, busy: busy.containers }, effects.clock.monotonic());
  }

  #act(pod: Pod, status: PodStatus, actions: PodActions): void {
    if (actions.createSandbox !== undefined) this.#failures.makesSandbox();
    this.#restarts.acting(actions);
    const signal = this.#signal;
    if (signal === undefined) return;
    const operations = this.#deps.runtime.syncPod(pod, status, actions);
    for (const operation of operations) this.#operations.launch(operation, status, signal);
  }

  async #terminating(state: Terminating | Terminated, status: PodStatus, signal: AbortSignal): Promise<void> {
    const { cause } = state.ending;
    const next = this.#termination.next(state, status);
    if (next.kind === "wait") return this.#schedule.by(next.waitUntilMs, cause);
    if (next.kind === "stopped") {
      this.#enter({ ...state, kind: "terminated", released: false, recorded: false });
      return this.#schedule.by(0, cause);
    }
    const held = this.#termination.held(this, state, status);
    if (held !== undefined) {
      this.#state = held.state;
      return this.#schedule.by(held.untilMs, cause);
    }
    this.#views.publish(this, status, this.#actions, cause);
    const isProgress = await this.#termination.stop(this, state, status, signal);
    this.#schedule.by(isProgress ? 0 : this.#after(retryDelayMs), cause);
  }

  async #terminated(state: Terminated, status: PodStatus, signal: AbortSignal): Promise<void> {
    // The runtime may have created it late, for a canceled start. Its resources must be released.
    if (!hasStopped(status)) return this.#terminating(state, status, signal);
    if (this.#forgotten === undefined) {
      const isRemembered = await this.#termination.release(this.ref, state, signal);
      if (!isRemembered) this.#schedule.by(this.#after(retryDelayMs), resync);
      this.#state = { ...state, released: true, recorded: isRemembered };
      this.#pruning.begin(status, this.#signal);
      return;
    }
    await this.#pruning.end(new CalledOff(this.#forgotten));
    await this.#termination.remove(this, state, { status, cause: this.#forgotten }, signal);
    this.#enter({ kind: "finished" });
  }

  #enter(to: WorkerState): void {
    checkTransition(this.#state, to);
    this.#termination.entered();
    this.#actions = undefined;
    this.#failures.clear();
    this.#decisions.entered(this.#state, to);
    this.#state = to;
  }

  #failed(error: unknown): void {
    this.#outage.failed(error);
    const message = errorMessage(error);
    this.#decisions.failed(this.#state.kind, message, this.#schedule.lastCause);
    this.#deps.effects.log.warn("pod sync failed", { ...this.ref, error: message });
    this.#deps.pleg.requestInspect(this.uid);
    this.#schedule.by(this.#after(retryDelayMs), { code: "RetryDue", message: `retry after: ${message}` });
  }

  #after(delayMs: typeof retryDelayMs): number {
    return this.#deps.effects.clock.monotonic() + delayMs(this.#deps.config, this.#deps.effects.random.uniform());
  }
}
