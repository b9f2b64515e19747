import type { SimNode } from "../life/node.ts";

export const podsDirectory = "/var/lib/kubelet/pods";

/**
 * Whether the pod could not be recorded before podwright ended. With a simulated UID, which has not the usual form, nothing
 * tells then that a directory is a pod's, and it is left alone.
 */
export function isUnrecorded({ files, entries }: Pick<SimNode, "files" | "entries">, uid: string): boolean {
  if (files.textOf(`${podsDirectory}/${uid}/podwright-pod.json`) !== undefined) return false;
  return entries.some(({ what, pod }) => what === "FailedMakePodDataDirectories" && pod?.uid === uid);
}
