import { isDeepStrictEqual } from "node:util";
import { allContainers } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { formatGoDuration } from "../base/go-duration.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { killContainerError, type StartFailure } from "../runtime/operations/pod-operation.ts";
import type { RestartTimes } from "./restart-times.ts";
import { outageOf } from "./runtime-outage.ts";

/** Why a container is not running, in the words that users know. */
export interface Waiting {
  readonly reason: string;
  readonly message: string;
}

interface Failure extends Waiting {
  /** Monotonic ms of the next try. */
  readonly retryAtMs: number;
  /** The runtime did not answer. */
  readonly isOutage: boolean;
}

/**
 * What of a pod could not be started, why, and when it is tried again. Each container stands for itself: one that waits
 * for its image delays no other's try.
 */
export class StartFailures {
  readonly #containers = new Map<string, Failure>();
  #sandbox: Failure | undefined;
  #isOutdated = false;
  readonly #tried = new Set<string>();
  /** Containers that have become different since a try with them began. */
  readonly #outdated = new Set<string>();

  /** @param defaultRetryMs monotonic ms of the next try where the failure does not say itself */
  settled(container: string, failure: StartFailure | undefined, defaultRetryMs: number): void {
    this.#tried.add(container);
    const isOutdated = this.#outdated.delete(container);
    if (failure === undefined) this.#containers.delete(container);
    else {
      const retryAtMs = isOutdated ? 0 : (failure.retryAtMs ?? defaultRetryMs);
      this.#containers.set(container, failureOf(failure, retryAtMs));
    }
  }

  /**
   * The pod is another one now. What was said of containers that have become different is over: they are tried at once,
   * those that are being tried (`busy`) as soon as that has failed.
   */
  updated(before: Pod | undefined, after: Pod, busy: ReadonlySet<string>): void {
    if (before === undefined || (this.#containers.size === 0 && busy.size === 0)) return;
    const known = new Map(allContainers(before.spec).map((container) => [container.name, container]));
    for (const container of allContainers(after.spec)) {
      if (isDeepStrictEqual(known.get(container.name), container)) continue;
      if (busy.has(container.name)) this.#outdated.add(container.name);
      else this.#containers.delete(container.name);
    }
  }

  sandboxFailed(failure: StartFailure, defaultRetryMs: number): void {
    this.#sandbox = failureOf(failure, this.#isOutdated ? 0 : (failure.retryAtMs ?? defaultRetryMs));
  }

  /** The runtime answers: what failed for want of it is tried at once. */
  outageOver(): void {
    for (const [name, failure] of this.#containers) {
      if (failure.isOutage) this.#containers.set(name, { ...failure, retryAtMs: 0 });
    }
    if (this.#sandbox?.isOutage === true) this.#sandbox = { ...this.#sandbox, retryAtMs: 0 };
  }

  /** A sandbox is made: what was said about the last try is over. */
  makesSandbox(): void {
    this.#sandbox = undefined;
    this.#isOutdated = false;
  }

  /** What the pod refers to has changed since its sandbox began to be made: should that fail, it is tried again at once. */
  outdated(): void {
    this.#isOutdated = true;
  }

  /**
   * What a decision tells of waits. A container that ran and is in crash-loop back-off waits for that alone: its failure
   * (of a postStart hook) is not what it waits for any more, and not its reason when it starts again.
   */
  decided({ waits }: Pick<PodActions, "waits">, nowMs: number): void {
    for (const { container, exited } of waits) {
      const { retryAtMs = Number.POSITIVE_INFINITY } = this.#containers.get(container.name) ?? {};
      if (exited !== undefined && retryAtMs <= nowMs) this.#containers.delete(container.name);
    }
  }

  retryAt(container: Container): number | undefined {
    return this.#containers.get(container.name)?.retryAtMs;
  }

  /** Containers whose start this life has tried, and knows how that ended. */
  get tried(): ReadonlySet<string> {
    return this.#tried;
  }

  /** Why the container could not be started the last time. */
  of(container: Container): Waiting | undefined {
    return this.#containers.get(container.name);
  }

  /** Why the pod could not be set up the last time. */
  get sandbox(): Waiting | undefined {
    return this.#sandbox;
  }

  get sandboxRetryAt(): number | undefined {
    return this.#sandbox?.retryAtMs;
  }

  clear(): void {
    this.#containers.clear();
    this.#outdated.clear();
    this.#sandbox = undefined;
  }

  /** Waiting reasons by container name: failures of their own, the sandbox' for all others, crash-loop back-off. */
  waiting(
    pod: Pod | undefined,
    actions: PodActions | undefined,
    restarts: Pick<RestartTimes, "delayMs">,
  ): ReadonlyMap<string, Waiting> {
    const waiting = new Map<string, Waiting>();
    if (pod === undefined) return waiting;
    const sandbox = this.#sandbox;
    for (const { name } of allContainers(pod.spec)) {
      const failure = this.#containers.get(name) ?? sandbox;
      // A stop that failed is not why a container does not run.
      if (failure === undefined || failure.reason === killContainerError) continue;
      waiting.set(name, { reason: failure.reason, message: failure.message });
    }
    for (const wait of actions?.waits ?? []) {
      if (wait.exited === undefined) continue;
      // The whole back-off, not what is left of it: a status does not change because time passes.
      const delay = formatGoDuration(restarts.delayMs(wait.container));
      const { namespace, name, uid } = pod.metadata;
      const message = `back-off ${delay} restarting failed container=${wait.container.name} pod=${name}_${namespace}(${uid})`;
      waiting.set(wait.container.name, { reason: "CrashLoopBackOff", message });
    }
    return waiting;
  }
}

function failureOf({ reason, message, error }: StartFailure, retryAtMs: number): Failure {
  return { reason, message, retryAtMs, isOutage: outageOf(error) !== undefined };
}
