import type { SimNode } from "../life/node.ts";
import { isRecorded } from "../life/recorded.ts";

/**
 * Whether the pod could not be recorded before podwright ended. With a simulated UID, which has not the usual form, nothing
 * tells then that a directory is a pod's, and it is left alone.
 */
export function isUnrecorded({ files, entries }: Pick<SimNode, "files" | "entries">, uid: string): boolean {
  if (isRecorded(files, uid)) return false;
  return entries.some(({ what, pod }) => what === "FailedMakePodDataDirectories" && pod?.uid === uid);
}
