import type { Cause } from "../journal/entry.ts";

/** Node-level reclaim, before pods are evicted. Failed removals are reported where they happen. */
export interface NodeReclaim {
  /** Removes all that evicted pods have left in the runtime. @returns IDs of the removed containers */
  removeEvicted(cause: Cause, signal: AbortSignal): Promise<readonly string[]>;
  /** Removes unneeded exited containers and sandboxes. @returns IDs of the removed containers */
  removeUnusedContainers(cause: Cause, signal: AbortSignal): Promise<readonly string[]>;
  /** Removes unused images. */
  removeUnusedImages(cause: Cause, signal: AbortSignal): Promise<void>;
}
