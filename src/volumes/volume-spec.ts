import type { PersistentVolume, VolumeMode } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { Volume } from "../api/volume.ts";

/** A pod volume's source: inline in the pod's spec, or a claim's PersistentVolume (upstream's `volume.Spec`). */
export interface VolumeSpec {
  /** Its name in the pod. */
  readonly podVolume: string;
  /** The name of its directory: the PersistentVolume's, or the pod volume's for an inline source. */
  readonly name: string;
  /** As in the pod's spec. */
  readonly volume: Volume;
  /** The PersistentVolume that `volume`'s claim is bound to. */
  readonly persistentVolume?: PersistentVolume | undefined;
  readonly claim?: PersistentVolumeClaim | undefined;
  /** The pod requests its claim read-only. */
  readonly readOnly: boolean;
  readonly mode: VolumeMode;
  /** Its source was translated from a removed in-tree plugin to the CSI driver. */
  readonly isMigrated: boolean;
}

/** An inline volume. */
export function inlineSpec(volume: Volume): VolumeSpec {
  return { podVolume: volume.name, name: volume.name, volume, readOnly: false, mode: "Filesystem", isMigrated: false };
}

/** The PersistentVolume's options for mount(8). One text may hold several. */
export function mountOptionsOf({ persistentVolume }: Pick<VolumeSpec, "persistentVolume">): readonly string[] {
  const texts = persistentVolume?.spec.mountOptions ?? [];
  return texts.flatMap((text) => text.split(",")).filter((option) => option !== "");
}

/** The volume's driver: a CSI driver's name, or its type. */
export function driverOf({ persistentVolume, volume }: VolumeSpec, kind: string): string {
  return (persistentVolume?.spec.csi ?? volume.csi)?.driver ?? kind;
}
