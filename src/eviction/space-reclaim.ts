import { withDeadline } from "../base/deadline.ts";
import { errorMessage } from "../base/errors.ts";
import type { Cause } from "../journal/entry.ts";
import type { Clock } from "../ports/clock.ts";
import type { Logger } from "../ports/log.ts";
import { nodeGarbage } from "./file-systems.ts";
import type { MachineState } from "./machine-state.ts";
import type { NodeReclaim } from "./node-reclaim.ts";
import type { PodUsageReader } from "./pod-usage.ts";
import type { Threshold } from "./thresholds.ts";
import { byUrgency } from "./urgency.ts";

export interface SpaceReclaimDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly usage: Pick<PodUsageReader, "areLayersFreed">;
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
}

/** Maximum time for each kind of removal. */
const removalLimitMs = 60_000;
/**
 * Runtimes free the layers of removed containers later: containerd's garbage collector waits fifty times as long as it
 * takes on average, some seconds on a slow disk.
 */
const freedLimitMs = 10_000;
const againMs = 500;

/** Frees a disk before a pod is evicted for it: what evicted pods' containers left, then the node's other garbage. */
export class SpaceReclaim {
  readonly #deps: SpaceReclaimDependencies;
  readonly #reclaim: NodeReclaim;

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
    const attempt = async (what: string, work: Removal): Promise<readonly string[]> =>
      await this.#attempt(what, work, signal);
    let ofEvicted = false;
    if (kinds.includes("containers")) {
      const removed = await attempt("containers of evicted pods", (within) => reclaim.removeEvicted(cause, within));
      ofEvicted = removed.length > 0;
      const after = ofEvicted
        ? await this.#lookOnceFreed({ containers: removed, look }, () => false, signal)
        : undefined;
      if (after !== undefined && !after.pressure.due.includes(threshold)) return { after, ofEvicted };
    }
    const removed: string[] = [];
    for (const kind of kinds) {
      const work: Removal = async (within) => {
        if (kind === "containers") return await reclaim.removeUnusedContainers(cause, within);
        await reclaim.removeUnusedImages(cause, within);
        return [];
      };
      removed.push(...(await attempt(`unused ${kind}`, work)));
    }
    return { after: await this.#lookOnceFreed({ containers: removed, look }, fillsUp, signal), ofEvicted };
  }

  /** Failed removals do not spare pods. @returns IDs of removed containers */
  async #attempt(what: string, work: Removal, signal: AbortSignal): Promise<readonly string[]> {
    const { clock, log } = this.#deps;
    return await withDeadline(clock, `${what} to be removed`, removalLimitMs, signal, work).catch((error: unknown) => {
      signal.throwIfAborted();
      log.warn("cannot reclaim node-level resources", { kind: what, error: errorMessage(error) });
      return [];
    });
  }

  /**
   * The machine once removed containers' layers have been freed, or as soon as that does not matter any more.
   * @param isLate whether there is no time left to wait, by the first observation and the latest
   */
  async #lookOnceFreed(
    { containers, look }: { readonly containers: readonly string[]; readonly look: Look },
    isLate: (first: MachineState, latest: MachineState) => boolean,
    signal: AbortSignal,
  ): Promise<MachineState> {
    const { clock, usage } = this.#deps;
    const untilMs = clock.monotonic() + freedLimitMs;
    let first: MachineState | undefined;
    for (;;) {
      // Asked first: the observation must have begun afterwards.
      const isOver = clock.monotonic() >= untilMs || (await usage.areLayersFreed(containers));
      const after = await look(signal);
      if (isOver || !waitsForLayers(after) || (first !== undefined && isLate(first, after))) return after;
      first ??= after;
      await clock.sleep("the layers of removed containers to be freed", againMs, signal);
    }
  }
}

type Look = (signal: AbortSignal) => Promise<MachineState>;
/** @returns IDs of removed containers */
type Removal = (signal: AbortSignal) => Promise<readonly string[]>;

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
