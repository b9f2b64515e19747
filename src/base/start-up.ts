import { invariant } from "./invariant.ts";

const stages = ["unlisted", "listed", "sourcesSeen", "allKnown"] as const;

/**
 * How much a kubelet knows since it was started: nothing; the runtime's pods; also the desired pods of every source; and of
 * each pod of the runtime whether it is desired or an orphan.
 */
export type Stage = (typeof stages)[number];

/**
 * The one state of a start. It only goes forward, whatever a source does later: whether a pod is an orphan now, says
 * `StartUpGate.hasPassedAll`.
 */
export class StartUp {
  #stage: Stage = "unlisted";
  readonly #waits = new Map(stages.map((stage) => [stage, Promise.withResolvers<void>()]));

  /** True from that stage on. */
  has(stage: Stage): boolean {
    return stages.indexOf(this.#stage) >= stages.indexOf(stage);
  }

  /** Resolves at that stage, immediately if it has passed. */
  when(stage: Stage): Promise<void> {
    return this.#waits.get(stage)?.promise ?? Promise.resolve();
  }

  /** The stage is reached. Idempotent, also for earlier stages. */
  reach(stage: Stage): void {
    if (this.has(stage)) return;
    const isNext = stages.indexOf(stage) === stages.indexOf(this.#stage) + 1;
    // Each needs the one before.
    invariant("start-up stages follow their order", isNext, () => `${this.#stage} to ${stage}`);
    this.#stage = stage;
    this.#waits.get(stage)?.resolve();
  }
}
