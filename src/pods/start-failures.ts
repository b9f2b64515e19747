import { isDeepStrictEqual } from "node:util";
import { allContainers } from "../api/all-containers.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { formatGoDuration } from "../base/go-duration.ts";
import type { PodActions } from "../runtime/actions/pod-actions.ts";
import { killContainerError, type StartFailure } from "../runtime/operations/pod-operation.ts";
import { isPodRestart } from "./describe-actions.ts";
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
 * Which parts of a pod could not be started, why, and when they are retried. Each container is independent: one that
 * waits for its image delays no other.
 */
export class StartFailures {
  readonly #containers = new Map<string, Failure>();
  #sandbox: Failure | undefined;
  #isOutdated = false;
  readonly #tried = new Set<string>();
  /** Containers whose definition changed since an attempt with them began. */
  readonly #outdated = new Set<string>();

  /** @param defaultRetryMs monotonic ms of the retry if the failure has none */
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
   * The pod changed. Failures of changed containers are void: they are retried immediately; those with an attempt in
   * progress (`busy`) once it has failed.
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

  /** What has failed is tried at once; until then it stays the reason why nothing runs. */
  retryNow(): void {
    for (const [name, failure] of this.#containers) this.#containers.set(name, { ...failure, retryAtMs: 0 });
    if (this.#sandbox !== undefined) this.#sandbox = { ...this.#sandbox, retryAtMs: 0 };
  }

  /** The runtime answers: what failed because of the outage is retried immediately. */
  outageOver(): void {
    for (const [name, failure] of this.#containers) {
      if (failure.isOutage) this.#containers.set(name, { ...failure, retryAtMs: 0 });
    }
    if (this.#sandbox?.isOutage === true) this.#sandbox = { ...this.#sandbox, retryAtMs: 0 };
  }

  /** A sandbox was created: the last failure is void. */
  makesSandbox(): void {
    this.#sandbox = undefined;
    this.#isOutdated = false;
  }

  /**
   * An object that the pod refers to changed while its sandbox was being created: if that fails, it is retried
   * immediately.
   */
  outdated(): void {
    this.#isOutdated = true;
  }

  /**
   * The waits of a decision. A container in crash-loop back-off waits for that alone: an earlier failure (of a
   * postStart hook) is neither its wait nor its reason any more. A pod that
   * has a sandbox after all, because the runtime created it but reported a failure, does not wait for one; the failure of a
   * restart of the whole pod is kept until that succeeds.
   */
  decided({ sandbox, restartAll, waits }: Pick<PodActions, "sandbox" | "restartAll" | "waits">, nowMs: number): void {
    const startsOver = restartAll !== undefined || waits.some(({ cause }) => isPodRestart(cause));
    if (sandbox !== undefined && !startsOver) this.#sandbox = undefined;
    for (const { container, exited } of waits) {
      const { retryAtMs = Number.POSITIVE_INFINITY } = this.#containers.get(container.name) ?? {};
      if (exited !== undefined && retryAtMs <= nowMs) this.#containers.delete(container.name);
    }
  }

  retryAt(container: Container): number | undefined {
    return this.#containers.get(container.name)?.retryAtMs;
  }

  /** Containers with a finished start attempt in this run. */
  get tried(): ReadonlySet<string> {
    return this.#tried;
  }

  /** Why the container's last start failed. */
  of(container: Container): Waiting | undefined {
    return this.#containers.get(container.name);
  }

  /** Why the pod's last set-up failed. */
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
      // A failed stop is not why a container does not run.
      if (failure === undefined || failure.reason === killContainerError) continue;
      waiting.set(name, { reason: failure.reason, message: failure.message });
    }
    for (const wait of actions?.waits ?? []) {
      if (wait.exited === undefined) continue;
      // The full back-off, not the remaining time: a status must not change with time alone.
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
