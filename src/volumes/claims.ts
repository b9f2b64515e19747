import type { PersistentVolume, VolumeMode } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { VolumeUse } from "./volume-use.ts";

const protection = "kubernetes.io/pvc-protection";
const gidAnnotation = "pv.beta.kubernetes.io/gid";
/** The condition with the reason for an unbound claim, if there is no binder to send Events. */
export const unboundCondition = "podwright.io/Unbound";
/** Of a claim's directory in the state directory: the claim, as `namespace/name`. */
export const claimOfDirectory = "podwright.io/directory-of";

/** A pod's reference to a claim. */
export interface ClaimReference {
  readonly claimName: string;
  readonly readOnly: boolean;
  /** A generic ephemeral volume: the claim must have been created for the pod. */
  readonly isEphemeral: boolean;
}

/** The claim of a pod's volume; undefined: none. Pure. */
export function claimReference(pod: Pod, volume: Volume): ClaimReference | undefined {
  const { persistentVolumeClaim: claim, ephemeral } = volume;
  if (claim !== undefined) {
    return { claimName: claim.claimName, readOnly: claim.readOnly ?? false, isEphemeral: false };
  }
  if (ephemeral === undefined) return undefined;
  return { claimName: `${pod.metadata.name}-${volume.name}`, readOnly: false, isEphemeral: true };
}

/** Why a claim cannot be used yet, in upstream's words; undefined: it can. Pure. */
export function claimProblem({ metadata, spec, status }: PersistentVolumeClaim): string | undefined {
  const isProtected = metadata.finalizers?.includes(protection) ?? false;
  if (metadata.deletionTimestamp !== undefined && !isProtected) return "PVC is being deleted";
  if (status?.phase !== "Bound") {
    const { message = "" } = status?.conditions?.find(({ type }) => type === unboundCondition) ?? {};
    return message === "" ? "PVC is not bound" : `PVC is not bound: ${message}`;
  }
  if ((spec.volumeName ?? "") === "") return "PVC has empty pvc.Spec.VolumeName";
  return undefined;
}

/** Why the claim of a generic ephemeral volume belongs to another owner; undefined: it is this pod's. Pure. */
export function ownerProblem({ metadata: claim }: PersistentVolumeClaim, { metadata: pod }: Pod): string | undefined {
  const owner = claim.ownerReferences?.find(({ controller }) => controller === true);
  if (claim.namespace === pod.namespace && owner?.uid === pod.uid) return undefined;
  const names = `PVC ${claim.namespace}/${claim.name} was not created for pod ${pod.namespace}/${pod.name}`;
  return `${names} (pod is not owner)`;
}

/** Why a PersistentVolume is not bound to the claim; undefined: it is. Pure. */
export function bindingProblem(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const { name } = volume.metadata;
  const { claimRef } = volume.spec;
  if (claimRef === undefined) {
    return `found PV object ${name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`;
  }
  const [bound = "", wanted = ""] = [claimRef.uid, claim.metadata.uid];
  if (bound === wanted) return undefined;
  return `found PV object ${name} but its pv.Spec.ClaimRef.UID ${bound} does not point to claim.UID ${wanted}`;
}

/** Why a volume's mode does not fit its use by the pod's containers; undefined: it does. Pure. */
export function modeProblem(volume: string, mode: VolumeMode, { mounted, mapped }: VolumeUse): string | undefined {
  const is = `volume ${volume} has volumeMode ${mode}, but is specified in`;
  if (mounted.has(volume) && mode !== "Filesystem") return `${is} volumeMounts`;
  if (mapped.has(volume) && mode !== "Block") return `${is} volumeDevices`;
  return undefined;
}

/** The group that owns the volume's files, for the pod's processes; undefined: none. Pure. */
export function volumeGroup(volume: PersistentVolume | undefined): number | undefined {
  const text = volume?.metadata.annotations?.[gidAnnotation] ?? "";
  const gid = /^[0-9]+$/u.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(gid) ? gid : undefined;
}

/** Whether only one pod may use the volume at a time. Pure. */
export function isExclusive(volume: PersistentVolume | undefined): boolean {
  const { accessModes = [] } = volume?.spec ?? {};
  return accessModes.length === 1 && accessModes[0] === "ReadWriteOncePod";
}
