import { normalize } from "node:path/posix";
import type { Pod } from "../api/pod.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { VolumeManifest } from "../api/storage-manifest.ts";
import type { PodRef } from "../journal/entry.ts";
import { podRef } from "../runtime/pod-ref.ts";
import type { ClaimView, FreeVolumeView } from "../server/local-api.ts";
import { objectKey } from "../sources/run-objects.ts";
import { claimReference } from "../volumes/claims.ts";
import { hasOwnDirectory, isBound, type KeptClaim, ownerOf, type StorageState } from "./kept-claim.ts";

/** A pod's reference to a claim. */
interface UsedClaim {
  /** `namespace/name` */
  readonly key: string;
  readonly isEphemeral: boolean;
}

/** The claims that a pod refers to. Pure. */
export function claimsOf(pod: Pod): UsedClaim[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const reference = claimReference(pod, volume);
    if (reference === undefined) return [];
    const { claimName: name, isEphemeral } = reference;
    return [{ key: objectKey({ namespace: pod.metadata.namespace, name }), isEphemeral }];
  });
}

/** The pods that may use a claim: by its name, or as owners of the ephemeral volume that it was created for. Pure. */
export function podsUsing(claim: KeptClaim, pods: readonly Pod[]): PodRef[] {
  const wanted = objectKey(claim.metadata);
  const owner = ownerOf(claim);
  const using = pods.filter((pod) =>
    claimsOf(pod).some(({ key, isEphemeral }) => key === wanted && (!isEphemeral || owner === pod.metadata.uid)),
  );
  return [...new Map(using.map((pod) => [pod.metadata.uid, podRef(pod)])).values()];
}

/** The pods that have a directory, or one in it, as a host path: of their own, or of a claim's PersistentVolume. */
function podsAt(
  directory: string,
  { claims, volumes }: Pick<StorageState, "claims" | "volumes">,
  pods: readonly Pod[],
): PodRef[] {
  const isThere = (path: string): boolean => normalize(`${path}/`).startsWith(`${directory}/`);
  const own = pods.filter(({ spec }) => spec.volumes?.some(({ hostPath }) => hostPath && isThere(hostPath.path)));
  const bound = [...claims.values()].filter((claim) => {
    const { local, hostPath } = (isBound(claim) && volumes.get(claim.spec.volumeName ?? "")?.spec) || {};
    const path = (local ?? hostPath)?.path;
    return path !== undefined && isThere(path);
  });
  return [...own.map(podRef), ...bound.flatMap((claim) => podsUsing(claim, pods))];
}

/**
 * The pods that may use a claim, or reach the data that goes with it in another way; each once. Pure.
 * @param directory of the claim, if its data is there
 */
export function usersOf(
  claim: KeptClaim,
  directory: string,
  state: Pick<StorageState, "claims" | "volumes">,
  pods: readonly Pod[],
): PodRef[] {
  const beside = hasOwnDirectory(claim) ? podsAt(directory, state, pods) : [];
  return [...new Map([...podsUsing(claim, pods), ...beside].map((pod) => [pod.uid, pod])).values()];
}

/** The location of a volume's data, for display. Pure. */
export function placeOf({
  spec: { local, hostPath, nfs, csi },
}: Pick<VolumeManifest | PersistentVolume, "spec">): string {
  const directory = (local ?? hostPath)?.path;
  if (nfs !== undefined) return `${nfs.path} of server ${nfs.server}`;
  return directory ?? `volume ${csi?.volumeHandle ?? ""} of driver ${csi?.driver ?? ""}`;
}

/** @param usedBy as of {@link usersOf}. Pure. */
export function claimView(
  claim: KeptClaim,
  { claim: object, volume }: { readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume | undefined },
  usedBy: readonly PodRef[],
): ClaimView {
  const { namespace, name } = claim.metadata;
  const owner = claim.metadata.ownerReferences?.find(({ uid }) => uid === ownerOf(claim));
  return {
    ...{ namespace, name },
    phase: isBound(claim) ? "Bound" : "Pending",
    message: object.status?.conditions?.[0]?.message ?? "",
    requested: String(claim.spec.resources?.requests?.["storage"] ?? ""),
    accessModes: claim.spec.accessModes ?? [],
    volume: volume?.metadata.name,
    path: (volume?.spec.local ?? volume?.spec.hostPath)?.path,
    where: volume && placeOf(volume),
    isOwn: hasOwnDirectory(claim),
    usedBy,
    owner: owner?.name,
    objects: [object, ...(volume === undefined ? [] : [volume])],
  };
}

/** The volumes without a bound claim, sorted by name. Pure. */
export function freeVolumeViews({ claims, volumes }: Pick<StorageState, "claims" | "volumes">): FreeVolumeView[] {
  const bound = new Set([...claims.values()].filter(isBound).map(({ spec }) => spec.volumeName));
  return [...volumes]
    .filter(([name]) => !bound.has(name))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, volume]) => {
      const { accessModes = [], capacity, claimRef, storageClassName = "" } = volume.spec;
      return {
        ...{ name, accessModes, storageClass: storageClassName, where: placeOf(volume) },
        capacity: String(capacity?.["storage"] ?? ""),
        keptFor: claimRef && objectKey(claimRef),
      };
    });
}
