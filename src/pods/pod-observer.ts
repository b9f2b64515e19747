import { invariant } from "../base/invariant.ts";
import type { ContainerId, PodUid } from "../base/ids.ts";
import type { PodRef } from "../journal/entry.ts";
import type { Observation, PodCache } from "../pleg/pod-cache.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { type MessageDependencies, readTerminationMessages } from "../runtime/status/termination-messages.ts";

interface ObserverDependencies {
  readonly messages: MessageDependencies;
  readonly pleg: Pick<
    Pleg,
    "now" | "ending" | "expedite" | "requestInspect" | "requestInspectSoon" | "requestInspectAfresh"
  >;
  readonly cache: PodCache;
  readonly config: { readonly observeLimitMs: number };
}

/** A worker's view of its pod: never older than the worker's own effects. */
export class PodObserver {
  readonly #deps: ObserverDependencies;
  readonly #ref: PodRef;
  readonly #uid: PodUid;
  /** Effects of this worker, and of earlier ones with its UID, are visible in observations after this one. */
  #effects: Observation;
  /** Termination messages of the containers that the last observation showed as terminated. */
  #messages: ReadonlyMap<ContainerId, string> = new Map();

  /** @param after earlier effects are visible in observations after this one */
  constructor(deps: ObserverDependencies, ref: PodRef, uid: PodUid, after: Observation) {
    this.#deps = deps;
    this.#ref = ref;
    this.#uid = uid;
    this.#effects = after;
  }

  /** Termination messages by container ID, as of the last observation. */
  get messages(): ReadonlyMap<ContainerId, string> {
    return this.#messages;
  }

  /** The worker may have changed the runtime: only newer observations count from here on. */
  acted(look: "requestInspect" | "requestInspectSoon" | "requestInspectAfresh" = "requestInspect"): void {
    const now = this.#deps.pleg.now();
    // Observations have increasing numbers.
    invariant(
      "the count of effects never decreases",
      now >= this.#effects,
      () => `${this.#uid}: ${now} after ${this.#effects}`,
    );
    this.#effects = now;
    this.#deps.pleg[look](this.#uid);
  }

  /** Until disposed of, the worker is stopping the pod's containers; {@link acted} says when that is done. */
  ending(): Disposable {
    return this.#deps.pleg.ending(this.#uid);
  }

  /**
   * An observation newer than all effects of the worker, including those of operations that ended while it waited.
   * @param prepare does what must be done before a decision, and may correct the status; during slow preparation the
   *   observation may become stale, and a newer one is awaited
   */
  async observe(
    prepare: (status: PodStatus) => Promise<PodStatus> | undefined,
    signal: AbortSignal,
  ): Promise<PodStatus> {
    const { cache, config, messages } = this.#deps;
    for (;;) {
      const effects = this.#effects;
      this.#deps.pleg.expedite(this.#uid);
      const status = await cache.getNewerThan(this.#uid, effects, config.observeLimitMs, signal);
      const { observed } = cache.get(this.#uid);
      // An older observation would repeat what was done since.
      const isNews = observed > effects;
      invariant(
        "decisions use observations newer than all effects",
        isNews,
        () => `${this.#uid}: ${observed}, ${effects}`,
      );
      this.#messages = await readTerminationMessages(messages, this.#ref, status, this.#messages);
      const preparing = prepare(status);
      const prepared = preparing === undefined ? status : await preparing;
      if (effects === this.#effects) return prepared;
    }
  }
}
