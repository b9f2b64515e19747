import type { MemoryFiles } from "../files.ts";

export const podsDirectory = "/var/lib/kubelet/pods";

/** Whether podwright has stored the pod's spec: by that alone it knows a simulated pod's directory. */
export function isRecorded(files: Pick<MemoryFiles, "ownerOf">, uid: string): boolean {
  return files.ownerOf(`${podsDirectory}/${uid}/podwright-pod.json`) !== undefined;
}
