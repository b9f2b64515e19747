import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { RuntimeInfo } from "../runtime-service/features.ts";
import type { NodePlace } from "./predicates.ts";

/** How a kubelet and its cluster exchange information about pods. */
export interface ClusterHooks {
  /** What this version does not support of a pod; empty: nothing. */
  readonly unsupported: (pod: Pod) => string;
  /** The Node object, if known. */
  readonly place: () => NodePlace | undefined;
  /** Gets the Node from the API server; resolves also on failure. */
  readonly refreshPlace: () => Promise<void>;
  /** Features of the current runtime, which may have been replaced since the start. */
  readonly runtime: () => Pick<RuntimeInfo, "handlers" | "supplementalGroupsPolicy"> | undefined;
  /** Why the runtime's network is not ready, in upstream's words; undefined: ready, or unknown. */
  readonly networkProblem: () => string | undefined;
  /** The pod has stopped and released its resources. May be called repeatedly. */
  readonly podReleased: (uid: PodUid) => void;
}
