import type { Cause } from "../journal/entry.ts";

/** What the node itself can give back before a pod has to. What can't be removed is told by who removes it. */
export interface NodeReclaim {
  /** Removes containers and sandboxes that have ended and that nobody needs. */
  removeUnusedContainers(cause: Cause, signal: AbortSignal): Promise<void>;
  /** Removes images that no pod uses, and none is about to use. */
  removeUnusedImages(cause: Cause, signal: AbortSignal): Promise<void>;
}
