import type { PodUid } from "../base/ids.ts";
import type { PodRef } from "../journal/entry.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { Logger } from "../ports/log.ts";
import type { DecisionLog } from "./decision-log.ts";

/** How often a pod that waits for another of its name checks again. */
export const rivalRetryMs = 1000;

interface RivalDependencies {
  readonly cache: Pick<PodCache, "get" | "isStale" | "getNewerThan">;
  readonly rivals: (ref: PodRef) => Promise<readonly PodUid[]>;
  readonly log: Logger;
}

export interface Rival {
  readonly uid: PodUid;
  /** That the pod waits for it, for people. */
  readonly message: string;
}

/** Finds a pod of the same name that must be removed first. After a restart it may be known to the runtime only. */
export class Rivals {
  readonly #deps: RivalDependencies;
  readonly #ref: PodRef;
  readonly #decisions: Pick<DecisionLog, "waitsFor">;

  constructor(deps: RivalDependencies, ref: PodRef, decisions: Pick<DecisionLog, "waitsFor">) {
    this.#deps = deps;
    this.#ref = ref;
    this.#decisions = decisions;
  }

  /** Undefined: no pod blocks it. A blocking pod is recorded once. */
  async next(signal: AbortSignal): Promise<Rival | undefined> {
    const { cache, log, rivals } = this.#deps;
    let [uid] = await rivals(this.#ref);
    if (uid !== undefined && cache.isStale(uid)) {
      await cache.getNewerThan(uid, cache.get(uid).observed, rivalRetryMs, signal).catch(() => {});
      [uid] = await rivals(this.#ref);
    }
    if (uid === undefined) return undefined;
    const { message, isNews } = this.#decisions.waitsFor(uid);
    if (isNews) log.info("pod waits for another pod of the same name", { ...this.#ref, message });
    return { uid, message };
  }
}
