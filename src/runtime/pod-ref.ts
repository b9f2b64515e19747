import type { Pod } from "../api/pod.ts";
import type { PodRef } from "../journal/entry.ts";

/** How journal entries and diagnostics refer to a pod. */
export function podRef(pod: Pod): PodRef {
  return { namespace: pod.metadata.namespace, name: pod.metadata.name, uid: pod.metadata.uid };
}
