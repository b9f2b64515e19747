import type { PodUid } from "../base/ids.ts";
import type { SubsystemHealth } from "../status/health.ts";

/** A manager's optional parts that the kubelet calls. */
export interface Manager {
  /** Reads the state of earlier runs, before any pod is worked on. */
  load?(): Promise<void>;
  /** Works until the signal aborts. Rejects only for a defect. */
  run?(signal: AbortSignal): Promise<void>;
  /** Called once nothing runs any more. */
  close?(): Promise<void>;
  /** Its health, for `podwright doctor`. */
  findings?(): SubsystemHealth[];
  /** Forgets a pod of which nothing is left on the node. */
  remove?(uid: PodUid): void;
}
