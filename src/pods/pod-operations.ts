import { invariant } from "../base/invariant.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { ContainerId } from "../base/ids.ts";
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
  /** The sandbox is not there yet. */
  wholePod: boolean;
  /** Containers that it has not come to an end with. */
  readonly pending: Set<string>;
  /** What there was of the pod when it began. */
  readonly before: PodStatus;
}

/** Which parts of a pod are being worked on. */
export interface Busy {
  /** The sandbox is being made or replaced: nothing can be decided about the pod. */
  readonly wholePod: boolean;
  readonly containers: ReadonlySet<string>;
  /** The pod's resources are being changed. */
  readonly resizing: boolean;
}

export interface OperationEvents extends Pick<OperationProgress, "sandboxFailed" | "settled" | "resizeFailed"> {
  /** From here on the pod is decided about again: by a look at it that shows the sandbox. */
  readonly sandboxMade: (before: PodStatus) => void;
  /** `before`: what there was of the pod when the start was decided. */
  readonly attempted: (container: Container, before: PodStatus) => void;
  /** Part of an operation, or all of it, has come to an end: time to look at the pod again. */
  readonly moved: (operation: PodOperation) => void;
}

/** The operations of one pod that are under way. They run beside each other and beside the worker's steps. */
export class PodOperations {
  readonly #running = new Set<Running>();
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #events: OperationEvents;

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

  /** The instances whose postStart hook is still to end. */
  inPostStart(pod: Pod | undefined, status: PodStatus): ReadonlySet<ContainerId> {
    const running = [...this.#running].filter(({ controller }) => !controller.signal.aborted);
    if (pod === undefined || running.length === 0) return new Set();
    // Made by an operation that is not done with it.
    return inPostStart(pod, status, ({ id, name }) => {
      return running.some(({ pending, before }) => pending.has(name) && !hasInstance(before, id));
    });
  }

  /** What is under way and since when (monotonic ms), for diagnostics. */
  list(): { readonly name: string; readonly sinceMs: number }[] {
    return [...this.#running].map(({ operation, sinceMs }) => ({ name: operation.name, sinceMs }));
  }

  /** Starts an operation that was decided on from `before`; `signal` ends it with podwright's life. */
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
    this.#check(operation);
    this.#running.add(running);
    void this.#run(running, signal);
  }

  /** What is being worked on is busy, and nothing is decided about it. */
  #check({ name, containers, resizes }: PodOperation): void {
    for (const { operation, pending, wholePod } of this.#running) {
      const beside = (): string => `${name} beside ${operation.name}`;
      const isFree = ![...containers].some((container) => pending.has(container));
      invariant("no container is in two operations at once", isFree, beside);
      invariant("nothing begins in a pod while its sandbox is made", !wholePod, beside);
      invariant("a pod is resized once at a time", resizes !== true || operation.resizes !== true, beside);
    }
  }

  /**
   * Calls everything off and tells how much that was. What has no effect yet will have none; a call that is on its way
   * may still be carried out.
   */
  abort(reason: Error): number {
    for (const running of this.#running) {
      running.calledOffMs ??= this.#clock.monotonic();
      running.controller.abort(reason);
    }
    return this.#running.size;
  }

  /**
   * Until when the stops of the pod wait for what was called off (monotonic ms); undefined: for nothing. A start that is
   * on its way to the runtime may still start what has its place in their order; that doesn't keep them waiting for long,
   * nor beyond the grace. What has stopped already is not over before.
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
