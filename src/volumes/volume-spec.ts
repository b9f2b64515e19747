import type { PersistentVolume, VolumeMode } from "../api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../api/persistent-volume-claim.ts";
import type { Volume } from "../api/volume.ts";

/** What a pod's volume leads to: a source in the pod's spec, or a claim's PersistentVolume (upstream's `volume.Spec`). */
export interface VolumeSpec {
  /** Its name in the pod. */
  readonly podVolume: string;
  /** The name of its directory: the PersistentVolume's, or the pod's for a source in its spec. */
  readonly name: string;
  /** As the pod has it. */
  readonly volume: Volume;
  /** What `volume`'s claim is bound to. */
  readonly persistentVolume?: PersistentVolume | undefined;
  readonly claim?: PersistentVolumeClaim | undefined;
  /** The pod wants its claim read-only. */
  readonly readOnly: boolean;
  readonly mode: VolumeMode;
  /** Its source names a removed in-tree driver, and has been translated to that driver's CSI successor. */
  readonly isMigrated: boolean;
}

/** A volume whose source is in the pod's spec. */
export function inlineSpec(volume: Volume): VolumeSpec {
  return { podVolume: volume.name, name: volume.name, volume, readOnly: false, mode: "Filesystem", isMigrated: false };
}

/** Who has the volume's storage: a CSI driver's name, or its kind. */
export function driverOf({ persistentVolume, volume }: VolumeSpec, kind: string): string {
  return (persistentVolume?.spec.csi ?? volume.csi)?.driver ?? kind;
}
