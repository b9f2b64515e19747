import type { Cause } from "../journal/entry.ts";

/** Node-level reclaim, before pods are evicted. Failed removals are reported where they happen. */
export interface NodeReclaim {
  /** Removes unneeded exited containers and sandboxes. */
  removeUnusedContainers(cause: Cause, signal: AbortSignal): Promise<void>;
  /** Removes unused images. */
  removeUnusedImages(cause: Cause, signal: AbortSignal): Promise<void>;
}
