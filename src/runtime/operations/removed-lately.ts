import type { ContainerId, PodUid } from "../../base/ids.ts";

/** A container that was removed: the runtime may not have freed its writable layer yet. */
export interface RemovedContainer {
  readonly id: ContainerId;
  /** Its pod's. */
  readonly uid: PodUid;
  /** Monotonic ms of its removal. */
  readonly atMs: number;
}

/**
 * Runtimes free the layers of removed containers later: containerd's garbage collector waits fifty times as long as it
 * takes on average, some seconds on a slow disk.
 */
export const layersFreedWithinMs = 10_000;

/** The containers whose layers may not be free yet, however they were removed. */
export class RemovedLately {
  #removed: readonly RemovedContainer[] = [];

  add(container: RemovedContainer): void {
    this.#removed = [...this.at(container.atMs), container];
  }

  /** At a monotonic time, the oldest first. */
  at(nowMs: number): readonly RemovedContainer[] {
    return this.#removed.filter(({ atMs }) => nowMs - atMs < layersFreedWithinMs);
  }
}
