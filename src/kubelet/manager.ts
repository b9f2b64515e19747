import type { PodUid } from "../base/ids.ts";
import type { SubsystemHealth } from "../status/health.ts";

/** What a kubelet calls of a manager, as far as the manager has it. */
export interface Manager {
  /** Reads what earlier lives kept, before any pod is worked on. */
  load?(): Promise<void>;
  /** Works until the signal aborts. Rejects only for a defect. */
  run?(signal: AbortSignal): Promise<void>;
  /** Called once nothing runs any more. */
  close?(): Promise<void>;
  /** How it is, for `podwright doctor`. */
  findings?(): SubsystemHealth[];
  /** Forgets a pod of which nothing is left on the node. */
  remove?(uid: PodUid): void;
}
