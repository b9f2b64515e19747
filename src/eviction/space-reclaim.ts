import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { layersFreedWithinMs, type RemovedContainer } from "../runtime/operations/removed-lately.ts";
import { besideLooks } from "./beside-looks.ts";
import { nodeGarbage } from "./file-systems.ts";
import type { MachineState } from "./machine-state.ts";
import type { NodeReclaim } from "./node-reclaim.ts";
import type { LayersLeft, PodUsageReader } from "./pod-usage.ts";
import type { Threshold } from "./thresholds.ts";
import { byUrgency } from "./urgency.ts";

export interface SpaceReclaimDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly usage: Pick<PodUsageReader, "layersLeft">;
}

/** What is to be freed, and why. */
export interface Shortage {
  readonly seen: MachineState;
  readonly threshold: Threshold;
  readonly cause: Cause;
}

/** The result of an attempt. */
export interface Reclaimed {
  readonly after: MachineState;
  /** Containers of evicted pods were removed: what is evicted now is another pod. */
  readonly ofEvicted: boolean;
  /** Something else than a disk is short, which does not wait for a removal that takes its time. */
  readonly isOngoing: boolean;
}

/** Maximum time for each kind of removal. */
const removalLimitMs = 60_000;
/**
 * The wait for the layers of garbage that was never measured. An evicted pod's containers were, when it was chosen: the
 * node is known to gain something by them. These may have written nothing, and unless the disk is slow runtimes have
 * freed them by then.
 */
const unknownGarbageMs = 3_000;
const againMs = 500;
/** On a disk that does not answer it is not known whether layers are there. */
const layersLimitMs = 5_000;

/** Frees a disk before a pod is evicted for it: what evicted pods' containers left, then the node's other garbage. */
export class SpaceReclaim {
  readonly #deps: SpaceReclaimDependencies;
  readonly #reclaim: NodeReclaim;
  /** Removals that have not ended, by what they remove: an attempt that was interrupted leaves them to the next one. */
  readonly #ongoing = new Map<string, Promise<readonly RemovedContainer[]>>();

  constructor(deps: SpaceReclaimDependencies, reclaim: NodeReclaim) {
    this.#deps = deps;
    this.#reclaim = reclaim;
  }

  /**
   * @param look observes the machine again
   * @returns undefined when there is nothing to try for the threshold
   */
  async free({ seen, threshold, cause }: Shortage, look: Look, signal: AbortSignal): Promise<Reclaimed | undefined> {
    const reclaim = this.#reclaim;
    const kinds = nodeGarbage(threshold.signal, seen.fileSystems);
    if (kinds.length === 0) return undefined;
    const attempt = async (what: string, work: Removal): Promise<Attempt> =>
      await this.#attempt({ what, work, look }, signal);
    let ofEvicted = false;
    if (kinds.includes("containers")) {
      const work: Removal = async (within) => await reclaim.removeEvicted(cause, within);
      const { removed, urgent } = await attempt("containers of evicted pods", work);
      if (urgent !== undefined) return { after: urgent, ofEvicted, isOngoing: true };
      ofEvicted = removed.length > 0;
      const after = ofEvicted
        ? await this.#lookOnceFreed({ removed, look, unknownMs: layersFreedWithinMs }, () => false, signal)
        : undefined;
      if (after !== undefined && !after.pressure.due.includes(threshold)) {
        return { after, ofEvicted, isOngoing: false };
      }
    }
    const removed: RemovedContainer[] = [];
    for (const kind of kinds) {
      const work: Removal = async (within) => {
        if (kind === "containers") return await reclaim.removeUnusedContainers(cause, within);
        await reclaim.removeUnusedImages(cause, within);
        return [];
      };
      const { removed: own, urgent } = await attempt(`unused ${kind}`, work);
      if (urgent !== undefined) return { after: urgent, ofEvicted, isOngoing: true };
      removed.push(...own);
    }
    return {
      after: await this.#lookOnceFreed({ removed, look, unknownMs: unknownGarbageMs }, fillsUp, signal),
      ofEvicted,
      isOngoing: false,
    };
  }

  /** Observes the machine while something is being removed. */
  async #attempt(
    { what, work, look }: { readonly what: string; readonly work: Removal; readonly look: Look },
    signal: AbortSignal,
  ): Promise<Attempt> {
    const removal = this.#ongoing.get(what) ?? this.#begin(what, work, signal);
    const awaited = { wait: "garbage to be removed", work: removal, look };
    const outcome = await besideLooks(this.#deps.clock, awaited, signal);
    return "urgent" in outcome ? { removed: [], urgent: outcome.urgent } : { removed: outcome.result };
  }

  /** Never rejects: failed removals do not spare pods. */
  #begin(what: string, work: Removal, signal: AbortSignal): Promise<readonly RemovedContainer[]> {
    const { clock, log } = this.#deps;
    const removal = withDeadline(clock, `${what} to be removed`, removalLimitMs, signal, work)
      .catch((error: unknown) => {
        const message = "cannot reclaim node-level resources";
        if (!signal.aborted) log.warn(message, { kind: what, error: errorMessage(error) });
        return [];
      })
      .finally(() => this.#ongoing.delete(what));
    this.#ongoing.set(what, removal);
    return removal;
  }

  /**
   * The machine once removed containers' layers have been freed, or as soon as that does not matter any more.
   * @param isLate whether there is no time left to wait, by the first observation and the latest
   */
  async #lookOnceFreed(
    { removed, look, unknownMs }: AwaitedLayers,
    isLate: (first: MachineState, latest: MachineState) => boolean,
    signal: AbortSignal,
  ): Promise<MachineState> {
    const { clock } = this.#deps;
    let first: MachineState | undefined;
    for (;;) {
      // Asked first: the observation must have begun afterwards.
      const isOver = !(await this.#mayHoldSpace(removed, unknownMs, signal));
      const after = await look(signal);
      if (isOver || !waitsForLayers(after) || (first !== undefined && isLate(first, after))) return after;
      first ??= after;
      await clock.sleep("the layers of removed containers to be freed", againMs, signal);
    }
  }

  async #mayHoldSpace(removed: readonly RemovedContainer[], unknownMs: number, signal: AbortSignal): Promise<boolean> {
    const { clock, usage } = this.#deps;
    const ids: readonly string[] = removed.map(({ id }) => id);
    const ask = async (): Promise<LayersLeft> => await usage.layersLeft(ids);
    const { there, unknown } = await withDeadline(clock, "layers to be looked up", layersLimitMs, signal, ask).catch(
      (): LayersLeft => ({ there: [], unknown: ids }),
    );
    signal.throwIfAborted();
    const nowMs = clock.monotonic();
    return removed.some(({ id, atMs }) => {
      if (there.includes(id)) return nowMs - atMs < layersFreedWithinMs;
      return unknown.includes(id) && nowMs - atMs < unknownMs;
    });
  }
}

type Look = (signal: AbortSignal) => Promise<MachineState>;
/** @returns containers that were removed lately */
type Removal = (signal: AbortSignal) => Promise<readonly RemovedContainer[]>;

interface Attempt {
  readonly removed: readonly RemovedContainer[];
  /** The removal goes on, and something else than a disk is short. */
  readonly urgent?: MachineState;
}

/** Removed containers whose layers are waited for. */
interface AwaitedLayers {
  readonly removed: readonly RemovedContainer[];
  readonly look: Look;
  /** For how long after its removal a layer is waited for that nobody can see. */
  readonly unknownMs: number;
}

/** Whether the disk continues to fill up: the size of garbage is not known, so it is no reason to let that happen. */
function fillsUp(first: MachineState, latest: MachineState): boolean {
  return first.pressure.due.some(({ signal }) => {
    const [before, now] = [first, latest].map(({ observations }) => observations.get(signal)?.available);
    return before !== undefined && now !== undefined && now * 10n < before * 9n;
  });
}

/** Whether the most urgent shortage is one that freed layers may end. */
function waitsForLayers({ pressure, fileSystems }: MachineState): boolean {
  const [first] = byUrgency(pressure.due);
  return first !== undefined && nodeGarbage(first.signal, fileSystems).includes("containers");
}
