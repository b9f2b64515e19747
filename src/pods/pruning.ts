import { eitherSignal } from "../base/abort.ts";
import { errorMessage } from "../base/errors.ts";
import type { PodRef } from "../journal/entry.ts";
import type { Logger } from "../ports/log.ts";
import type { GarbagePolicy } from "../runtime/actions/garbage.ts";
import type { PodRuntime } from "../runtime/operations/pod-runtime.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { PodObserver } from "./pod-observer.ts";

export interface PruningDependencies {
  readonly effects: { readonly log: Pick<Logger, "error"> };
  readonly runtime: Pick<PodRuntime, "collectGarbage">;
  readonly config: { readonly garbage: GarbagePolicy };
}

/**
 * Removes a pod's dead containers and sandboxes beside its worker's steps, so that a removal that takes long delays
 * neither decisions nor statuses. What was superseded when it began still is, however long it takes.
 */
export class Pruning {
  readonly #deps: PruningDependencies;
  readonly #ref: PodRef;
  readonly #observer: Pick<PodObserver, "acted">;
  #underWay: { readonly controller: AbortController; readonly ended: Promise<void> } | undefined;

  constructor(deps: PruningDependencies, ref: PodRef, observer: Pick<PodObserver, "acted">) {
    this.#deps = deps;
    this.#ref = ref;
    this.#observer = observer;
  }

  /** Begins with what an observation shows, one at a time; `signal` cancels it when podwright stops. */
  begin(status: PodStatus, signal: AbortSignal | undefined): void {
    if (this.#underWay !== undefined || signal === undefined) return;
    const controller = new AbortController();
    this.#underWay = { controller, ended: this.#run(status, signal, controller.signal) };
  }

  cancel(reason: Error): void {
    this.#underWay?.controller.abort(reason);
  }

  /** Cancels it, and resolves when nothing is being removed. Never rejects. */
  async end(reason: Error): Promise<void> {
    this.cancel(reason);
    await this.#underWay?.ended;
  }

  /** Never rejects. */
  async #run(status: PodStatus, signal: AbortSignal, canceled: AbortSignal): Promise<void> {
    const { effects, runtime, config } = this.#deps;
    using either = eitherSignal(signal, canceled);
    try {
      const isPruned = await runtime.collectGarbage(this.#ref, status, config.garbage, either.signal);
      if (isPruned) this.#observer.acted("requestInspectAfresh");
    } catch (error) {
      if (either.signal.aborted) return;
      effects.log.error("cannot prune a pod", { ...this.#ref, error: errorMessage(error) });
    } finally {
      this.#underWay = undefined;
    }
  }
}
