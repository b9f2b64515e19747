import type { KnownPod } from "../kubelet/known-pods.ts";
import type { NodePod } from "../node-api/node-pods.ts";
import { isTerminalPhase } from "../status/phase.ts";

type ListedPod = Pick<KnownPod, "view" | "status" | "desired">;

/** Pods whose logs and containers can be reached: those that a source has, and those that still stop. Pure. */
export function presentPods(known: readonly ListedPod[]): NodePod[] {
  return known.flatMap((each) => nodePod(each.view.pod, each));
}

/**
 * Pods that a source has, as it has them: what upstream's pod manager lists. A pod that was removed, or replaced by one of
 * its name, is not among them while it stops: clients that go by names would take it for the new one. Pure.
 */
export function desiredPods(known: readonly ListedPod[]): NodePod[] {
  return known.flatMap((each) => nodePod(each.desired, each));
}

function nodePod(pod: NodePod["pod"] | undefined, { view, status }: ListedPod): NodePod[] {
  if (pod === undefined) return [];
  const { kind } = view.state;
  const ended = kind === "terminated" || kind === "finished" || isTerminalPhase(status?.phase);
  return [{ pod, status, observed: view.status, ended }];
}
