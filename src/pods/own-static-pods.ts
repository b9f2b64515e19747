import type { Pod } from "../api/pod.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { OwnStaticPod } from "./mirror-actions.ts";
import type { WorkerState } from "./worker-state.ts";

/** Static pods that are desired or not gone yet, as in their manifests. Pure. */
export function ownStaticPods(
  workers: readonly { readonly pod: Pod | undefined; readonly isStatic: boolean; readonly state: WorkerState }[],
  waiting: readonly Pod[],
): OwnStaticPod[] {
  const known = workers.flatMap(({ pod, isStatic, state }) => {
    return pod !== undefined && isStatic ? [{ pod, isStopping: state.kind === "terminating" }] : [];
  });
  return [...known, ...waiting.filter(isStaticPod).map((pod) => ({ pod, isStopping: false }))];
}
