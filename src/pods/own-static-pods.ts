import type { Pod } from "../api/pod.ts";
import { isStaticPod } from "../api/pod-kind.ts";
import type { PodRef } from "../journal/entry.ts";
import type { OwnStaticPod } from "./mirror-actions.ts";
import type { WorkerState } from "./worker-state.ts";

interface PodWork {
  readonly ref: PodRef;
  /** Undefined: an orphan whose spec cannot be read. */
  readonly pod: Pod | undefined;
  readonly isStatic: boolean;
  readonly state: WorkerState;
}

/**
 * Static pods that are desired or not gone yet, as in their manifests. An orphan whose spec cannot be read may be one. Pure.
 */
export function ownStaticPods(workers: readonly PodWork[], waiting: readonly Pod[]): OwnStaticPod[] {
  const known = workers.flatMap(({ ref, pod, isStatic, state }) => {
    const isStopping = state.kind === "terminating";
    if (pod === undefined) return [{ pod: { metadata: ref }, isStopping }];
    return isStatic ? [{ pod, isStopping }] : [];
  });
  return [...known, ...waiting.filter(isStaticPod).map((pod) => ({ pod, isStopping: false }))];
}
