import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { ObjectMeta } from "../api/meta.ts";
import type { Pod } from "../api/pod.ts";
import { type ClaimManifest, ClaimSpec, type VolumeManifest } from "../api/storage-manifest.ts";
import { claimOfDirectory, unboundCondition } from "../volumes/claims.ts";
import { goValues } from "../yaml/go-values.ts";
import { isBound, type KeptClaim, ownVolumeName } from "./kept-claim.ts";

/**
 * A claim as the API server would show it.
 * @param why the reason why it is not bound
 */
export function claimObject(claim: KeptClaim, volume: PersistentVolume | undefined, why = ""): PersistentVolumeClaim {
  const { resources } = claim.spec;
  const spec = { ...claim.spec, resources: { ...resources, requests: texts(resources?.requests) } };
  const { accessModes = [], capacity = {} } = volume?.spec ?? {};
  const pending = { phase: "Pending", conditions: [{ type: unboundCondition, status: "True", message: why }] };
  const status = isBound(claim) ? { phase: "Bound", accessModes, capacity } : pending;
  return { apiVersion: claim.apiVersion, kind: claim.kind, metadata: claim.metadata, spec, status };
}

/** The claim during its deletion, while no pod uses it. */
export function deletedClaim(claim: PersistentVolumeClaim, deletionTimestamp: string): PersistentVolumeClaim {
  return { ...claim, metadata: { ...claim.metadata, deletionTimestamp } };
}

/** The PersistentVolume of a document, bound to the claim. */
export function volumeObject(volume: VolumeManifest, claim: KeptClaim): PersistentVolume {
  const { apiVersion, kind, metadata, spec } = volume;
  const { capacity, volumeMode = "Filesystem", accessModes, mountOptions, nodeAffinity, storageClassName } = spec;
  const { persistentVolumeReclaimPolicy, hostPath, local, nfs, csi } = spec;
  const kept = { accessModes, mountOptions, nodeAffinity, storageClassName, persistentVolumeReclaimPolicy };
  return {
    ...{ apiVersion, kind },
    metadata: { ...metadata, name: metadata.name ?? "" },
    spec: { ...kept, hostPath, local, nfs, csi, capacity: texts(capacity), volumeMode, claimRef: claimRef(claim) },
  };
}

/** The PersistentVolume of a claim with its own directory. */
export function directoryVolume(claim: KeptClaim, path: string): PersistentVolume {
  const { accessModes, resources } = claim.spec;
  const { namespace, name } = claim.metadata;
  return {
    ...{ apiVersion: "v1", kind: "PersistentVolume" },
    metadata: { name: ownVolumeName(claim), annotations: { [claimOfDirectory]: `${namespace}/${name}` } },
    spec: {
      capacity: texts(resources?.requests),
      ...(accessModes !== undefined && { accessModes }),
      claimRef: claimRef(claim),
      persistentVolumeReclaimPolicy: "Delete",
      volumeMode: "Filesystem",
      local: { path },
    },
  };
}

function claimRef({ apiVersion, kind, metadata: { namespace, name, uid } }: KeptClaim) {
  return { apiVersion, kind, namespace, name, uid };
}

function texts(quantities: Readonly<Record<string, string | number>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(quantities).map(([name, quantity]) => [name, String(quantity)]));
}

/** The claim of that name that a generic ephemeral volume of one of the pods needs; undefined: none does. Pure. */
export function ephemeralClaim(
  pods: readonly Pod[],
  namespace: string,
  name: string,
):
  | { readonly manifest: ClaimManifest; readonly owner: NonNullable<ObjectMeta["ownerReferences"]>[number] }
  | undefined {
  for (const { metadata, spec } of pods) {
    if (metadata.namespace !== namespace) continue;
    const volume = spec.volumes?.find(
      (each) => each.ephemeral !== undefined && `${metadata.name}-${each.name}` === name,
    );
    const template = volume?.ephemeral?.volumeClaimTemplate;
    if (template === undefined) continue;
    const { labels, annotations } = template.metadata ?? {};
    const manifest: ClaimManifest = {
      ...({ apiVersion: "v1", kind: "PersistentVolumeClaim" } as const),
      metadata: { name, namespace, labels, annotations },
      spec: ClaimSpec.parse(goValues(ClaimSpec, template.spec)),
    };
    const owner = { apiVersion: "v1", kind: "Pod", name: metadata.name, uid: metadata.uid };
    return { manifest, owner: { ...owner, controller: true, blockOwnerDeletion: true } };
  }
  return undefined;
}
