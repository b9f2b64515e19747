import type { Pod } from "./pod.ts";

const sourceAnnotation = "kubernetes.io/config.source";
const mirrorAnnotation = "kubernetes.io/config.mirror";
/** Priority from which a pod counts as critical (scheduling.SystemCriticalPriority). */
const criticalPriority = 2_000_000_000;

/** Pods of the node's own manifests, as `staticPodPath` and `staticPodURL` bring them. */
export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata.annotations?.[sourceAnnotation];
  return source === "file" || source === "http";
}

/** Pods that the API server wants here. */
export function isFromServer(pod: Pod): boolean {
  return (pod.metadata.annotations?.[sourceAnnotation] ?? "api") === "api";
}

/** The API server's picture of a static pod. */
export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata.annotations?.[mirrorAnnotation] !== undefined;
}

/** Pods that are admitted and kept before all others. */
export function isCriticalPod(pod: Pod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec.priority ?? 0) >= criticalPriority;
}

/** Critical pods that the node cannot work without: they are killed last. */
export function isNodeCriticalPod(pod: Pod): boolean {
  return isCriticalPod(pod) && pod.spec.priorityClassName === "system-node-critical";
}

/** The API server deletes it: it must stop and never run again. */
export function isDeleted(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}
