import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Recorder } from "../journal/entry.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { Ending } from "./ending.ts";
import type { PodWorkers } from "./pod-workers.ts";

export interface PodKillerDependencies {
  readonly workers: Pick<PodWorkers, "get" | "terminate">;
  readonly journal: Recorder;
  /** Monotonic ms. */
  readonly now: () => number;
}

const exceededGrace = "Container runtime did not kill the pod within specified grace period.";
/** However short the grace period, the runtime needs its time. */
const leastPatienceSeconds = 10;

interface Killed {
  readonly pod: Pod;
  readonly ending: Ending;
  /** Monotonic ms by which it should have stopped. */
  readonly dueMs: number;
  readonly done: (hasStopped: boolean) => void;
}

/** Stops pods that sources still have, and reports which are overdue (upstream's killPodNow). */
export class PodKiller {
  readonly #deps: PodKillerDependencies;
  readonly #killed = new Map<PodUid, Killed>();

  constructor(deps: PodKillerDependencies) {
    this.#deps = deps;
  }

  /**
   * Stops a pod for good. Resolves to true once it has stopped; to false after 1.5 times its grace period, or when it
   * is killed again. Never rejects.
   */
  async kill(pod: Pod, ending: Ending): Promise<boolean> {
    const uid = pod.metadata.uid;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const patienceMs = Math.max(leastPatienceSeconds, Math.floor(ending.graceSeconds * 1.5)) * 1000;
    this.#killed.get(uid)?.done(false);
    this.#killed.set(uid, { pod, ending, dueMs: this.#deps.now() + patienceMs, done: resolve });
    this.#deps.workers.terminate(uid, ending);
    return await promise;
  }

  /** Checks which pods have stopped and which are overdue. Called when one has stopped, and periodically. */
  look(): void {
    const { workers, journal, now } = this.#deps;
    for (const [uid, { pod, ending, dueMs, done }] of this.#killed) {
      const stops = workers.get(uid)?.state.kind === "terminating";
      if (stops && now() < dueMs) continue;
      this.#killed.delete(uid);
      done(!stops);
      if (!stops) continue;
      const what = "ExceededGracePeriod";
      journal.record({ kind: "decision", what, message: exceededGrace, pod: podRef(pod), cause: ending.cause });
    }
  }
}
