import type { CsiDriver } from "../api/csi-node.ts";
import type { Pod } from "../api/pod.ts";
import type { DriverManifest, StorageManifest, VolumeManifest } from "../api/storage-manifest.ts";
import { trimmedEnd } from "../base/trimmed.ts";
import { objectKey } from "../sources/run-objects.ts";
import { bindAll } from "./bind-all.ts";
import { ephemeralClaim } from "./claim-objects.ts";
import { claimsOf } from "./claim-views.ts";
import { changedState, type ComingChange } from "./storage-changes.ts";

/** Where drivers' manifests expect the kubelet. */
const kubeletPlace = "/var/lib/kubelet";

/**
 * The pods that are drivers, or use CSI volumes: also by claims that are bound to them only once the objects are taken, or
 * the pods are there. Pure but for `newClaim` and `decide`.
 */
export function driverPods({ state: before, objects, pods, newClaim, decide }: ComingChange): Pod[] {
  const { state } = changedState(before, objects, newClaim);
  const all = new Map(state.claims);
  for (const pod of pods) {
    for (const { key, isEphemeral } of claimsOf(pod)) {
      if (!isEphemeral || all.has(key)) continue;
      const found = ephemeralClaim([pod], pod.metadata.namespace, key.slice(key.indexOf("/") + 1));
      if (found !== undefined) all.set(key, newClaim(found.manifest));
    }
  }
  const { claims } = bindAll({ ...state, claims: all }, decide);
  const isOfDriver = (key: string): boolean => {
    return state.volumes.get(claims.get(key)?.spec.volumeName ?? "")?.spec.csi !== undefined;
  };
  return pods.filter((pod) => {
    const isUser = pod.spec.volumes?.some(({ csi }) => csi !== undefined) === true;
    return isUser || isDriver(pod) || claimsOf(pod).some(({ key }) => isOfDriver(key));
  });
}

/** Whether a volume of a driver is among the objects. Pure. */
export function bringsDriverVolume(objects: readonly StorageManifest[]): boolean {
  return objects.some((object) => object.kind === "PersistentVolume" && object.spec.csi !== undefined);
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
