import type { Pod } from "../api/pod.ts";

/** What a kubelet and its cluster tell one another of pods. */
export interface ClusterHooks {
  /** What of a pod this version can't do; empty: nothing. */
  readonly unsupported: (pod: Pod) => string;
  /** The pod has stopped and holds nothing any more. Also called again and again. */
  readonly podReleased: (uid: string) => void;
}
