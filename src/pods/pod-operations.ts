import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { ContainerId } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import type { OperationProgress, PodOperation } from "../runtime/operations/pod-operation.ts";
import { hasInstance, type PodStatus } from "../runtime/status/pod-status.ts";
import { inPostStart } from "./post-start-hooks.ts";

const calledOffPatienceMs = 10_000;

interface Running {
  readonly operation: PodOperation;
  readonly controller: AbortController;
  readonly sinceMs: number;
  /** Monotonic ms. */
  calledOffMs: number | undefined;
  /** The sandbox does not exist yet. */
  wholePod: boolean;
  /** Containers that it still works on. */
  readonly pending: Set<string>;
  /** The pod's status when the operation started. */
  readonly before: PodStatus;
}

/** Which parts of a pod have operations in progress. */
export interface Busy {
  /** The sandbox is being created or replaced: no decision about the pod is possible. */
  readonly wholePod: boolean;
  readonly containers: ReadonlySet<string>;
  /** The pod is being resized. */
  readonly resizing: boolean;
}

export interface OperationEvents extends Pick<
  OperationProgress,
  "sandboxFailed" | "settled" | "stopping" | "resizeFailed"
> {
  /** From here on decisions about the pod resume, based on an observation with the sandbox. */
  readonly sandboxMade: (before: PodStatus) => void;
  /** `before`: the pod's status when the start was decided. */
  readonly attempted: (container: Container, before: PodStatus) => void;
  /** An operation, or part of it, has ended: sync the pod. */
  readonly moved: (operation: PodOperation) => void;
}

/** The operations in progress of one pod. They run concurrently with each other and with the worker's steps. */
export class PodOperations {
  readonly #running = new Set<Running>();
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #events: OperationEvents;
  /** The pod stops for good. */
  #hasEnded = false;

  constructor(clock: Clock, log: Logger, events: OperationEvents) {
    this.#clock = clock;
    this.#log = log;
    this.#events = events;
  }

  get busy(): Busy {
    const running = [...this.#running];
    return {
      wholePod: running.some(({ wholePod }) => wholePod),
      containers: new Set(running.flatMap(({ pending }) => [...pending])),
      resizing: running.some(({ operation }) => operation.resizes === true),
    };
  }

  get count(): number {
    return this.#running.size;
  }

  /** Instances whose postStart hook is still running. */
  inPostStart(pod: Pod | undefined, status: PodStatus): ReadonlySet<ContainerId> {
    const running = [...this.#running].filter(({ controller }) => !controller.signal.aborted);
    if (pod === undefined || running.length === 0) return new Set();
    // Created by an operation that has not finished with it.
    return inPostStart(pod, status, ({ id, name }) => {
      return running.some(({ pending, before }) => pending.has(name) && !hasInstance(before, id));
    });
  }

  /** Operations in progress and their start (monotonic ms), for diagnostics. */
  list(): { readonly name: string; readonly sinceMs: number }[] {
    return [...this.#running].map(({ operation, sinceMs }) => ({ name: operation.name, sinceMs }));
  }

  /** Starts an operation decided from `before`; `signal` cancels it when podwright stops. */
  launch(operation: PodOperation, before: PodStatus, signal: AbortSignal): void {
    const running: Running = {
      operation,
      controller: new AbortController(),
      sinceMs: this.#clock.monotonic(),
      calledOffMs: undefined,
      wholePod: operation.wholePod,
      pending: new Set(operation.containers),
      before,
    };
    // What is started then has no place in the order of the stops.
    invariant("no operation begins in a pod that is ending", !this.#hasEnded, () => operation.name);
    this.#check(operation);
    this.#running.add(running);
    void this.#run(running, signal);
  }

  /** What an operation works on is busy, and excluded from decisions. */
  #check({ name, containers, resizes }: PodOperation): void {
    for (const { operation, pending, wholePod } of this.#running) {
      const beside = (): string => `${name} beside ${operation.name}`;
      const isFree = ![...containers].some((container) => pending.has(container));
      invariant("no container is in two operations at once", isFree, beside);
      invariant("no operation begins in a pod while its sandbox is created", !wholePod, beside);
      invariant("a pod has one resize at a time", resizes !== true || operation.resizes !== true, beside);
    }
  }

  /**
   * Cancels all operations and returns how many. Those without an effect yet will have none; a call in progress may
   * still be carried out.
   */
  abort(reason: Error): number {
    for (const running of this.#running) {
      running.calledOffMs ??= this.#clock.monotonic();
      running.controller.abort(reason);
    }
    return this.#running.size;
  }

  /** The same, and nothing begins any more. */
  end(reason: Error): number {
    this.#hasEnded = true;
    return this.abort(reason);
  }

  /**
   * Until when the pod's stop waits for canceled operations (monotonic ms); undefined: no wait. A start already sent to
   * the runtime may still start a container that has its place in the stop order; the stop waits for it briefly, and
   * never beyond the grace period. A pod without running containers has not stopped while an operation still runs.
   */
  calledOffUntil(hasStopped: boolean, killAtMs: number): number | undefined {
    if (this.#running.size === 0) return undefined;
    const nowMs = this.#clock.monotonic();
    if (hasStopped) return nowMs + calledOffPatienceMs;
    const calledOffMs = Math.max(...[...this.#running].map((running) => running.calledOffMs ?? 0));
    const untilMs = Math.min(killAtMs, calledOffMs + calledOffPatienceMs);
    return untilMs > nowMs ? untilMs : undefined;
  }

  async #run(running: Running, signal: AbortSignal): Promise<void> {
    using either = eitherSignal(signal, running.controller.signal);
    const progress: OperationProgress = {
      sandboxFailed: (failure) => this.#events.sandboxFailed(failure),
      sandboxMade: () => {
        running.wholePod = false;
        this.#events.sandboxMade(running.before);
      },
      resizeFailed: (error) => this.#events.resizeFailed(error),
      stopping: (instances, cause) => this.#events.stopping(instances, cause),
      attempted: (container) => this.#events.attempted(container, running.before),
      settled: (container, failure) => {
        running.pending.delete(container);
        this.#events.settled(container, failure);
        if (running.pending.size > 0) this.#events.moved(running.operation);
      },
    };
    try {
      await running.operation.run(progress, either.signal);
    } catch (error) {
      if (!either.signal.aborted) {
        this.#log.error("operation failed", { operation: running.operation.name, error: errorMessage(error) });
      }
    } finally {
      this.#running.delete(running);
      if (!signal.aborted) this.#events.moved(running.operation);
    }
  }
}
