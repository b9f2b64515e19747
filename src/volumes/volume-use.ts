import { allContainers } from "../api/all-containers.ts";
import type { Pod } from "../api/pod.ts";

/** How a pod's containers use its volumes, by name. */
export interface VolumeUse {
  /** By volumeMounts, or as an env file. */
  readonly mounted: ReadonlySet<string>;
  /** By volumeDevices. */
  readonly mapped: ReadonlySet<string>;
}

/** Which of a pod's volumes its containers use; the others are neither set up nor waited for. Pure. */
export function volumeUse({ spec }: Pod): VolumeUse {
  const [mounted, mapped] = [new Set<string>(), new Set<string>()];
  for (const { volumeMounts = [], volumeDevices = [], env = [] } of allContainers(spec)) {
    for (const { name } of volumeMounts) mounted.add(name);
    for (const { name } of volumeDevices) mapped.add(name);
    for (const { valueFrom } of env) if (valueFrom?.fileKeyRef) mounted.add(valueFrom.fileKeyRef.volumeName);
  }
  return { mounted, mapped };
}
