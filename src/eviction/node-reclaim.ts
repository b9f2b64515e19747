import type { Cause } from "../journal/entry.ts";
import type { RemovedContainer } from "../runtime/operations/removed-lately.ts";

/** Node-level reclaim, before pods are evicted. Failed removals are reported where they happen. */
export interface NodeReclaim {
  /** Removes all that evicted pods have left in the runtime. @returns their containers that were removed lately */
  removeEvicted(cause: Cause, signal: AbortSignal): Promise<readonly RemovedContainer[]>;
  /** Removes unneeded exited containers and sandboxes. @returns all containers that were removed lately */
  removeUnusedContainers(cause: Cause, signal: AbortSignal): Promise<readonly RemovedContainer[]>;
  /** Removes unused images. */
  removeUnusedImages(cause: Cause, signal: AbortSignal): Promise<void>;
}
