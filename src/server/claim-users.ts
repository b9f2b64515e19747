import { containersOf } from "../api/all-containers.ts";
import type { ContainerView, PodView } from "./local-api.ts";

/** The waiting reasons of a container before its first start, when the pod's volumes may still be missing. */
const beforeStart: ReadonlySet<string> = new Set(["", "ContainerCreating", "PodInitializing"]);

/**
 * The other pods that have the claim of a pod's volume: those that may have it mounted or, if none of them may, all that
 * refer to it and have not released it. Pure.
 * @param volume the pod's name of it
 * @param listed the node's pods
 */
export function othersWithClaim(pod: PodView, volume: string, listed: readonly PodView[]): PodView[] {
  const claim = pod.claims?.[volume];
  if (claim === undefined) return [];
  const others = listed.filter(({ uid, namespace, claims }) => {
    return uid !== pod.uid && namespace === pod.namespace && Object.values(claims ?? {}).includes(claim);
  });
  const likely = others.filter(mayHaveVolumes);
  return likely.length > 0 ? likely : others.filter((other) => !hasReleased(other));
}

/** Its volumes, for which its containers wait, were set up, and are not known to be released. */
function mayHaveVolumes(pod: PodView): boolean {
  if (pod.state === "terminated") return !hasReleased(pod);
  return pod.state === "terminating" || containersOf(pod).some(hasBegun);
}

/** A pod that has stopped has no volume left unless it waits for one. */
function hasReleased({ state, holdout }: PodView): boolean {
  return state === "terminated" && holdout === undefined;
}

/** The container was started, or an image or its last exit kept it from that: its volumes come before both. */
function hasBegun({ state, reason, restartCount }: ContainerView): boolean {
  return state !== "waiting" || restartCount > 0 || !beforeStart.has(reason);
}
