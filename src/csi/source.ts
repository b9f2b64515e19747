import type { Pod } from "../api/pod.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { VolumeSpec } from "../volumes/volume-spec.ts";
import { type CsiNames, isDriverName } from "./names.ts";
import type { LifecycleMode } from "./requests.ts";

/** A Secret for a driver's calls. */
export interface SecretPlace {
  readonly namespace: string;
  readonly name: string;
}

/** A CSI volume, from a PersistentVolume or from the pod's spec. */
export interface CsiSource {
  readonly driver: string;
  readonly handle: string;
  /** The name of its directories: the PV's, or the pod volume's. */
  readonly name: string;
  readonly lifecycle: LifecycleMode;
  readonly mode: VolumeSpec["mode"];
  readonly readOnly: boolean;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly mountOptions: readonly string[];
  /** Of the PV; undefined: an inline volume, or a PV without any. */
  readonly accessModes: readonly string[] | undefined;
  /** The SELinux label that its file system is mounted with, if its driver supports it; undefined: none. */
  readonly seLinuxLabel: string | undefined;
  readonly stageSecret: SecretPlace | undefined;
  readonly publishSecret: SecretPlace | undefined;
  readonly expandSecret: SecretPlace | undefined;
  /** Migrated from an in-tree volume. */
  readonly isMigrated: boolean;
}

/**
 * The inputs of the driver's calls. Pure.
 * @throws VolumeError for a name that leads out of the driver's directories
 */
export function csiSource(spec: VolumeSpec, pod: Pod, names: Pick<CsiNames, "inlineHandle">): CsiSource {
  const source = spec.persistentVolume === undefined ? inlineSource(spec, pod, names) : persistentSource(spec);
  if (!isDriverName(source.driver)) {
    throw new VolumeError(`kubernetes.io/csi: ${JSON.stringify(source.driver)} is not the name of a CSI driver`);
  }
  if (source.handle === "") throw new VolumeError("kubernetes.io/csi: the volume handle is empty");
  return source;
}

function inlineSource(spec: VolumeSpec, { metadata }: Pod, names: Pick<CsiNames, "inlineHandle">): CsiSource {
  const { csi } = spec.volume;
  if (csi === undefined) throw new VolumeError("kubernetes.io/csi: volume source not found in volume.Spec");
  const { driver, readOnly = false, fsType = "", volumeAttributes = {}, nodePublishSecretRef } = csi;
  const secret = nodePublishSecretRef?.name;
  return {
    driver,
    handle: names.inlineHandle(metadata.uid, spec.name),
    name: spec.name,
    lifecycle: "Ephemeral",
    mode: "Filesystem",
    readOnly,
    fsType,
    attributes: volumeAttributes,
    mountOptions: [],
    accessModes: undefined,
    seLinuxLabel: undefined,
    stageSecret: undefined,
    publishSecret: secret === undefined ? undefined : { namespace: metadata.namespace, name: secret },
    expandSecret: undefined,
    isMigrated: spec.isMigrated,
  };
}

function persistentSource(spec: VolumeSpec): CsiSource {
  const { accessModes, mountOptions = [], csi } = spec.persistentVolume?.spec ?? {};
  if (csi === undefined) throw new VolumeError("kubernetes.io/csi: volume source not found in volume.Spec");
  return {
    driver: csi.driver,
    handle: csi.volumeHandle,
    name: spec.name,
    lifecycle: "Persistent",
    mode: spec.mode,
    readOnly: spec.readOnly,
    fsType: csi.fsType ?? "",
    attributes: csi.volumeAttributes ?? {},
    mountOptions,
    accessModes,
    seLinuxLabel: spec.seLinuxLabel,
    stageSecret: secretPlace(csi.nodeStageSecretRef),
    publishSecret: secretPlace(csi.nodePublishSecretRef),
    expandSecret: secretPlace(csi.nodeExpandSecretRef),
    isMigrated: spec.isMigrated,
  };
}

function secretPlace(
  reference: { readonly name?: string | undefined; readonly namespace?: string | undefined } | undefined,
): SecretPlace | undefined {
  return reference && { namespace: reference.namespace ?? "", name: reference.name ?? "" };
}

/** The first access mode of the PV; ReadWriteOnce if it has none. */
export function accessModeOf({ accessModes }: CsiSource): string {
  return accessModes?.[0] ?? "ReadWriteOnce";
}
