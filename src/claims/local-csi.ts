import type { CsiDriver } from "../api/csi-node.ts";
import type { Pod } from "../api/pod.ts";
import type { DriverManifest, StorageManifest, VolumeManifest } from "../api/storage-manifest.ts";
import { trimmedEnd } from "../base/trimmed.ts";
import { objectKey } from "../sources/run-objects.ts";
import { claimsOf } from "./claim-views.ts";
import type { StorageState } from "./kept-claim.ts";

/** Where drivers' manifests expect the kubelet. */
const kubeletPlace = "/var/lib/kubelet";

/** Whether pods are drivers, or use CSI volumes. Pure. */
export function needsDrivers(state: StorageState, objects: readonly StorageManifest[], pods: readonly Pod[]): boolean {
  if (objects.some((object) => object.kind === "PersistentVolume" && object.spec.csi !== undefined)) return true;
  if (pods.some((pod) => isDriver(pod) || pod.spec.volumes?.some(({ csi }) => csi !== undefined))) return true;
  return pods.flatMap(claimsOf).some(({ key }) => {
    return state.volumes.get(state.claims.get(key)?.spec.volumeName ?? "")?.spec.csi !== undefined;
  });
}

/**
 * Whether a pod registers with a kubelet or mounts volumes for it. A pod that only reads these paths is not a driver.
 * Pure.
 */
export function isDriver({ spec }: Pod): boolean {
  const containers = [...(spec.initContainers ?? []), ...spec.containers];
  const mounts = containers.flatMap(({ volumeMounts = [] }) => volumeMounts);
  return (spec.volumes ?? []).some(({ name, hostPath }) => {
    const path = trimmedEnd(hostPath?.path ?? "", "/");
    if (path === `${kubeletPlace}/plugins_registry`) return true;
    if (path !== kubeletPlace && !path.startsWith(`${kubeletPlace}/`)) return false;
    return mounts.some((mount) => mount.name === name && mount.mountPropagation === "Bidirectional");
  });
}

/** The drivers' objects with the API server's defaults. Pure. */
export function driverObjects(manifests: Iterable<DriverManifest>): CsiDriver[] {
  return [...manifests].map(({ metadata, spec }) => ({
    metadata: { name: metadata.name ?? "" },
    spec: {
      ...{ podInfoOnMount: false, volumeLifecycleModes: ["Persistent"], fsGroupPolicy: "ReadWriteOnceWithFSType" },
      ...{ requiresRepublish: false, serviceAccountTokenInSecrets: false },
      ...spec,
      tokenRequests: [],
    },
  }));
}

/** The Secrets that volumes pass to drivers, as `namespace/name`. Pure. */
export function driverSecrets(volumes: Iterable<VolumeManifest>): Set<string> {
  const references = [...volumes].flatMap(({ spec: { csi } }) => {
    return [csi?.nodeStageSecretRef, csi?.nodePublishSecretRef, csi?.nodeExpandSecretRef];
  });
  return new Set(references.flatMap((reference) => (reference === undefined ? [] : [objectKey(reference)])));
}
