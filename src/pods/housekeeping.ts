import { errorMessage } from "../base/errors.ts";
import type { PodUid } from "../base/ids.ts";
import { invariant } from "../base/invariant.ts";
import type { StartUp } from "../base/start-up.ts";
import type { Cause } from "../journal/entry.ts";
import type { Observer } from "../journal/observer.ts";
import type { PodCache } from "../pleg/pod-cache.ts";
import type { Pleg } from "../pleg/pleg.ts";
import type { Effects } from "../runtime/effects.ts";
import { keptSpec } from "../runtime/layout/kept-spec.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import type { PodLeftovers } from "./leftovers.ts";
import type { CheckpointDependencies } from "./pod-checkpoint.ts";
import type { PodEndings } from "./pod-endings.ts";
import type { PodKiller } from "./pod-killer.ts";
import type { PodWorkers } from "./pod-workers.ts";
import type { StartUpGate } from "./start-up-gate.ts";
import type { SyncLoop } from "./sync-loop.ts";
import { takenUp, takenUpText } from "./taken-up.ts";
import type { UnclaimedPods } from "./unclaimed-pods.ts";

export interface HousekeepingDependencies {
  readonly effects: Pick<Effects, "clock" | "journal" | "log">;
  readonly observer?: Observer | undefined;
  readonly startUp: Pick<StartUp, "has" | "reach">;
  readonly gate: Pick<StartUpGate, "hasPassedAll">;
  readonly pleg: Pick<Pleg, "isListed" | "listed">;
  readonly cache: Pick<PodCache, "uids" | "has" | "get" | "delete">;
  readonly workers: Pick<PodWorkers, "get" | "has" | "isUnseenSinceRemoval" | "removeOrphan">;
  readonly killer: Pick<PodKiller, "look">;
  readonly syncLoop: Pick<SyncLoop, "retry" | "waiting">;
  /** Where pod checkpoints are stored. */
  readonly checkpoint: CheckpointDependencies;
  readonly endings: Pick<PodEndings, "take">;
  readonly unclaimed: Pick<UnclaimedPods, "clear">;
  /** Which of the runtime's pods this node may remove. */
  readonly owns: (uid: PodUid) => Promise<boolean>;
  /** Pods with leftovers on disk or in the cgroup tree. */
  readonly leftovers: Pick<PodLeftovers, "isPods" | "others" | "podUids" | "remove">;
  readonly periodMs: number;
}

/** Ms between searches for orphaned pods, until all pods of the runtime are known. */
const firstLookMs = 200;

/**
 * How long the removal of a pod's leftovers may block the next pod's; a longer one, e.g. with an absent driver,
 * continues in the background.
 */
const removalMs = 2000;

/**
 * Searches for orphaned pods: in the runtime, on disk, in the cgroup tree (upstream's HandlePodCleanups). A pod is
 * known to be one once every source has delivered. The first search after that, which gives each pod of the runtime its
 * worker, completes the start-up.
 */
export class Housekeeping {
  readonly #deps: HousekeepingDependencies;
  /** Leftovers that are being removed; false: some of them are left. */
  readonly #removing = new Map<PodUid, Promise<boolean>>();

  constructor(deps: HousekeepingDependencies) {
    this.#deps = deps;
  }

  /** Does housekeeping until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { effects, killer, periodMs, startUp, syncLoop } = this.#deps;
    while (!signal.aborted) {
      try {
        await this.#look(signal);
      } catch (error) {
        effects.log.warn("housekeeping failed", { error: errorMessage(error) });
      }
      killer.look();
      // Some pods that wait for unclaimed pods may pass now.
      if (!startUp.has("allKnown")) syncLoop.retry();
      // Soon, until all pods of the runtime are known: orphans are shown and stopped without delay.
      const pauseMs = startUp.has("allKnown") ? periodMs : Math.min(periodMs, firstLookMs);
      await effects.clock.sleep("housekeeping", pauseMs, signal).catch(() => {});
    }
    await Promise.all(this.#removing.values());
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { cache, gate, pleg, startUp } = this.#deps;
    const isAllWanted = gate.hasPassedAll();
    await this.#endOrphans(isAllWanted);
    if (!isAllWanted) return;
    startUp.reach("sourcesSeen");
    if (!startUp.has("allKnown") && pleg.listed.every((uid) => cache.has(uid))) this.#allKnown();
    await this.#sweep(signal);
  }

  /** Desired, and not admitted yet. */
  #waits(uid: PodUid): boolean {
    return this.#deps.syncLoop.waiting.some(({ metadata }) => metadata.uid === uid);
  }

  /** Stops orphaned pods of the runtime, if every source that may have them has delivered. */
  async #endOrphans(isAllWanted: boolean): Promise<void> {
    const { cache, checkpoint, endings, owns, workers } = this.#deps;
    for (const uid of cache.uids()) {
      // A removed pod stays in the cache until its next inspection.
      if (workers.has(uid) || workers.isUnseenSinceRemoval(uid) || this.#waits(uid)) continue;
      const { status, error } = cache.get(uid);
      if (!isAllWanted && !this.#isDisowned(status)) continue;
      if (status.sandboxes.length > 0 || status.containers.length > 0) {
        if (!(await owns(uid))) continue;
        const pod = await keptSpec(checkpoint.files, checkpoint.node, uid);
        const because = endings.take(uid)?.cause;
        const cause: Cause = { code: "OrphanedPod", message: "no source has this pod", ...(because && { because }) };
        workers.removeOrphan({ uid, name: status.name, namespace: status.namespace }, pod, cause);
      } else if (error === undefined) {
        cache.delete(uid);
      }
    }
  }

  /**
   * A static pod whose file or URL no longer has it. Without an API server it would hold the name of its successor for
   * as long as the outage lasts.
   */
  #isDisowned({ sandboxes }: PodStatus): boolean {
    const source = sandboxes[0]?.source;
    return (source === "file" || source === "http") && this.#deps.gate.hasPassedAll(source);
  }

  #allKnown(): void {
    const { cache, effects, startUp, syncLoop, unclaimed, workers } = this.#deps;
    startUp.reach("allKnown");
    unclaimed.clear();
    syncLoop.retry();
    const found = takenUp(cache, (uid) => workers.get(uid)?.forgotten === false);
    if (found === undefined) return;
    effects.log.info("took over running pods", { ...found });
    effects.journal.record({ kind: "note", what: "PodsTakenUp", message: takenUpText(found) });
  }

  /** Paths of directories among those of pods that are no pod's. */
  get others(): readonly string[] {
    return this.#deps.leftovers.others;
  }

  /** Removes leftovers of removed pods, however long that takes. */
  async removeLeftovers(signal: AbortSignal): Promise<void> {
    await this.#sweep(signal);
    await Promise.all(this.#removing.values());
  }

  /** What takes long for one pod, or fails, does not affect others. */
  async #sweep(signal: AbortSignal): Promise<void> {
    const { workers, cache, pleg, endings, leftovers, observer } = this.#deps;
    let [found, failed] = [0, 0];
    for (const uid of await leftovers.podUids()) {
      // A listed pod that could not be inspected yet may be running, on the volumes that are here; one that waits may begin.
      const known = this.#waits(uid) || workers.has(uid) || cache.has(uid) || pleg.isListed(uid);
      if (known || !(await leftovers.isPods(uid))) continue;
      endings.take(uid);
      found++;
      // A removal in progress is not waited for again.
      if (this.#removing.has(uid) || !(await this.#removeWithin(uid, signal))) failed++;
      signal.throwIfAborted();
    }
    observer?.leftoversSwept(found, failed);
  }

  /** False: some of it is left, or not removed yet. */
  async #removeWithin(uid: PodUid, signal: AbortSignal): Promise<boolean> {
    const late = Promise.withResolvers<false>();
    const wait = `the leftovers of pod ${uid} to be removed`;
    using _limit = this.#deps.effects.clock.timer(wait, removalMs, () => late.resolve(false));
    const removing = this.#remove(uid, signal).finally(() => this.#removing.delete(uid));
    this.#removing.set(uid, removing);
    return await Promise.race([removing, late.promise]);
  }

  async #remove(uid: PodUid, signal: AbortSignal): Promise<boolean> {
    const { workers, leftovers, effects } = this.#deps;
    try {
      const isGone = await leftovers.remove(uid, signal);
      // Its volumes would go while it makes them.
      invariant("leftovers do not belong to an active pod", !workers.has(uid), () => uid);
      return isGone;
    } catch (error) {
      if (signal.aborted) return false;
      effects.log.warn("cannot remove the leftovers of a pod", { uid, error: errorMessage(error) });
      return false;
    }
  }
}
