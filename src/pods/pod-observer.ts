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

/** What its worker sees of a pod: never less than it has done itself. */
export class PodObserver {
  readonly #deps: ObserverDependencies;
  readonly #ref: PodRef;
  readonly #uid: PodUid;
  /** Everything that this worker did, or one of its UID before it, is seen by observations after this one. */
  #effects: Observation;
  /** What the containers that the last look showed as ended left. */
  #messages: ReadonlyMap<ContainerId, string> = new Map();

  /** @param after what was done before can be seen by observations after this one */
  constructor(deps: ObserverDependencies, ref: PodRef, uid: PodUid, after: Observation) {
    this.#deps = deps;
    this.#ref = ref;
    this.#uid = uid;
    this.#effects = after;
  }

  /** Termination messages by container id, as of the last look. */
  get messages(): ReadonlyMap<ContainerId, string> {
    return this.#messages;
  }

  /** The runtime may have changed under its worker's hands: only a newer look counts from here on. */
  acted(look: "requestInspect" | "requestInspectSoon" | "requestInspectAfresh" = "requestInspect"): void {
    const now = this.#deps.pleg.now();
    // Observations are counted up.
    invariant("effects are never set back", now >= this.#effects, () => `${this.#uid}: ${now} after ${this.#effects}`);
    this.#effects = now;
    this.#deps.pleg[look](this.#uid);
  }

  /** Until disposed of the worker ends what the pod has; {@link acted} says when that is done. */
  ending(): Disposable {
    return this.#deps.pleg.ending(this.#uid);
  }

  /**
   * What the runtime shows, seen after all that the worker has done: also what came to an end while it waited.
   * @param prepare what has to be done before anything is decided by it, and what is to be put right in it; what takes long
   * there makes looks stale
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
      // Acting on an older view would do twice what was done since.
      const isNews = observed > effects;
      invariant("what decides was observed after all effects", isNews, () => `${this.#uid}: ${observed}, ${effects}`);
      this.#messages = await readTerminationMessages(messages, this.#ref, status, this.#messages);
      const preparing = prepare(status);
      const prepared = preparing === undefined ? status : await preparing;
      if (effects === this.#effects) return prepared;
    }
  }
}
