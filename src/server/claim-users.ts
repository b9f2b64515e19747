import { containersOf } from "../api/all-containers.ts";
import type { PodView } from "./local-api.ts";

/**
 * The other pods that have the claim of a pod's volume: those that may have it mounted or, if none of them may, all that
 * refer to it. Pure.
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
  return likely.length > 0 ? likely : others;
}

/** Its containers were started, which wait for its volumes, and the volumes are not known to be released. */
function mayHaveVolumes(pod: PodView): boolean {
  if (pod.state === "terminated") return pod.holdout !== undefined;
  return pod.state === "terminating" || containersOf(pod).some(({ state }) => state !== "waiting");
}
