import type { Pod } from "../api/pod.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { OwnStaticPod } from "./mirror-actions.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Static pods that are wanted or not yet gone, as their manifests have them. Pure.
 * @param seen a pod as it was seen last, where its worker has none
 */
export function ownStaticPods(
  workers: readonly { readonly uid: string; readonly pod: Pod | undefined; readonly state: WorkerState }[],
  waiting: readonly Pod[],
  seen: (uid: string) => Pod | undefined,
): OwnStaticPod[] {
  const known = workers.flatMap(({ uid, pod = seen(uid), state }) => {
    return pod === undefined ? [] : [{ pod, isStopping: state.kind === "terminating" }];
  });
  return [...known, ...waiting.map((pod) => ({ pod, isStopping: false }))].filter(({ pod }) => isStaticPod(pod));
}
