import { isFromServer } from "../api/pod-kind.ts";
import type { Pod } from "../api/pod.ts";
import type { KnownPod } from "../kubelet/known-pods.ts";
import type { CountedPod } from "../metrics/pod-gauges.ts";
import type { NodePod } from "../node-api/node-pods.ts";
import { isTerminalPhase } from "../status/phase.ts";

type ListedPod = Pick<KnownPod, "view" | "status" | "desired">;

/** Pods whose logs and containers can be reached: those that a source has, and those that still stop. Pure. */
export function presentPods(known: readonly ListedPod[]): NodePod[] {
  return known.flatMap((each) => nodePod(each.view.pod, each));
}

/**
 * Pods that a source has, as it has them: what upstream's pod manager lists. A pod that was removed, or replaced by one
 * of its name, is not among them while it stops: clients that go by names would take it for the new one. Pure.
 */
export function desiredPods(known: readonly ListedPod[]): NodePod[] {
  return known.flatMap((each) => nodePod(each.desired, each));
}

/**
 * Pods as metrics count them. Pure.
 * @param volumePlugins upstream's names of the plugins of a pod's volumes
 */
export function countedPods(known: readonly KnownPod[], volumePlugins: (pod: Pod) => readonly string[]): CountedPod[] {
  return known.map(({ view, desired, work }): CountedPod => {
    const { state, status, resize } = view;
    const pod = desired ?? view.pod;
    const isEnding = state.kind === "terminating" || state.kind === "terminated";
    return {
      pod,
      isStatic: pod !== undefined && !isFromServer(pod),
      wanted: desired !== undefined,
      isOrphan: work === "orphan",
      state: work === "waiting" ? undefined : state.kind,
      isRefused: isEnding && state.ending.outcome === "refused",
      observed: status,
      pendingResize: resize?.pending?.reason,
      resizing: resize?.inProgress !== undefined,
      volumePlugins: view.pod === undefined ? [] : volumePlugins(view.pod),
    };
  });
}

function nodePod(pod: Pod | undefined, { view, status }: ListedPod): NodePod[] {
  if (pod === undefined) return [];
  const { kind } = view.state;
  const ended = kind === "terminated" || kind === "finished" || isTerminalPhase(status?.phase);
  return [{ pod, status, observed: view.status, ended }];
}
