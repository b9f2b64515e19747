import type { Pod } from "../api/pod.ts";
import type { Cause } from "../journal/entry.ts";

/** A change of what is wanted, from the merged sources. */
export interface PodChange {
  /** update: the same UID with other content. */
  readonly op: "add" | "update" | "remove";
  readonly pod: Pod;
  readonly cause: Cause;
  /** remove: a shorter grace than the pod's own. */
  readonly graceSeconds?: number;
}
