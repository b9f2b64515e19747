import type { PersistentVolume, VolumeMode } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { Volume } from "../api/volume.ts";
import { claimOfDirectory } from "./claims.ts";

/** A pod volume's source: inline in the pod's spec, or a claim's PersistentVolume (upstream's `volume.Spec`). */
export interface VolumeSpec {
  /** Its name in the pod. */
  readonly podVolume: string;
  /** The name of its directory: the PersistentVolume's, or the pod volume's for an inline source. */
  readonly name: string;
  /** As in the pod's spec. */
  readonly volume: Volume;
  /** The PersistentVolume that `volume`'s claim is bound to: what {@link keptOfVolume} keeps of it. */
  readonly persistentVolume?: PersistentVolume | undefined;
  /** What {@link keptOfClaim} keeps of it. */
  readonly claim?: PersistentVolumeClaim | undefined;
  /** The group that owns its files, for the pod's processes. */
  readonly group?: number | undefined;
  /** The pod requests its claim read-only. */
  readonly readOnly: boolean;
  /** The SELinux label that its file system may be mounted with; undefined: none. */
  readonly seLinuxLabel?: string | undefined;
  readonly mode: VolumeMode;
  /** Its source was translated from a removed in-tree plugin to the CSI driver. */
  readonly isMigrated: boolean;
}

/** An inline volume. */
export function inlineSpec(volume: Volume): VolumeSpec {
  return { podVolume: volume.name, name: volume.name, volume, readOnly: false, mode: "Filesystem", isMigrated: false };
}

const mountOptionsAnnotation = "volume.beta.kubernetes.io/mount-options";
const keptAnnotations: ReadonlySet<string> = new Set([claimOfDirectory, mountOptionsAnnotation]);

/**
 * What is needed of a PersistentVolume while a pod uses it, after it was found to be bound to the pod's claim: a node
 * keeps this for each of its volumes. Pure.
 */
export function keptOfVolume({ metadata: { name, annotations }, spec }: PersistentVolume): PersistentVolume {
  const { claimRef: _bound, persistentVolumeReclaimPolicy: _policy, storageClassName: _class, ...kept } = spec;
  const own = Object.entries(annotations ?? {}).filter(([key]) => keptAnnotations.has(key));
  return { metadata: { name, ...(own.length > 0 && { annotations: Object.fromEntries(own) }) }, spec: kept };
}

/** The same of a claim, after it was found to be usable by the pod. Pure. */
export function keptOfClaim({ metadata, status }: PersistentVolumeClaim): PersistentVolumeClaim {
  const { name, namespace, uid } = metadata;
  return { metadata: { name, namespace, uid }, spec: {}, status: { capacity: status?.capacity } };
}

/** The PersistentVolume's options for mount(8), the older annotation first, as upstream. One text may hold several. */
export function mountOptionsOf({ persistentVolume }: Pick<VolumeSpec, "persistentVolume">): readonly string[] {
  const annotated = persistentVolume?.metadata.annotations?.[mountOptionsAnnotation];
  const texts = annotated === undefined ? (persistentVolume?.spec.mountOptions ?? []) : [annotated];
  return texts.flatMap((text) => text.split(",")).filter((option) => option !== "");
}

/** The volume's driver: a CSI driver's name, or its type. */
export function driverOf({ persistentVolume, volume }: VolumeSpec, kind: string): string {
  return (persistentVolume?.spec.csi ?? volume.csi)?.driver ?? kind;
}
