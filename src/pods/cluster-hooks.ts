import type { Pod } from "../api/pod.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import type { NodePlace } from "./predicates.ts";

/** What a kubelet and its cluster tell one another of pods. */
export interface ClusterHooks {
  /** What of a pod this version can't do; empty: nothing. */
  readonly unsupported: (pod: Pod) => string;
  /** The node as the API server has it, as far as it is known. */
  readonly place: () => NodePlace | undefined;
  /** Asks the API server for the node; resolves also when it can't be had. */
  readonly refreshPlace: () => Promise<void>;
  /** What the runtime can do now, where it may have been replaced by another version since the start. */
  readonly runtime: () => Pick<RuntimeInfo, "supplementalGroupsPolicy"> | undefined;
  /** Why the runtime gives pods no network, in upstream's words; undefined: it does, as far as it has said. */
  readonly networkProblem: () => string | undefined;
  /** The pod has stopped and holds nothing any more. Also called again and again. */
  readonly podReleased: (uid: string) => void;
}
