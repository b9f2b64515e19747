import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";

/** A change of the desired pods, from the merged sources. */
export interface PodChange {
  /** update: same UID, changed content. */
  readonly op: "add" | "update" | "remove";
  readonly pod: Pod;
  readonly cause: Cause;
  /** remove: a grace period shorter than the pod's own. */
  readonly graceSeconds?: number;
}
