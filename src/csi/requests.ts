import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CsiDriver } from "../api/csi-node.ts";
import type { Pod } from "../api/pod.ts";
import type { VolumeCapability_AccessMode_Mode, VolumeCapabilitySchema } from "../ports/gen/csi/v1/csi_pb.js";

export type LifecycleMode = "Persistent" | "Ephemeral";

/** VolumeCapability.AccessMode.Mode; loaded with the first driver. */
export type AccessModes = typeof VolumeCapability_AccessMode_Mode;

/** The use of a volume, as sent to its driver. */
export interface VolumeUse {
  readonly mode: "Filesystem" | "Block";
  /** The first access mode of the PV; ReadWriteOnce for a PV without any, and for inline volumes. */
  readonly accessMode: string;
  readonly fsType: string;
  readonly mountOptions: readonly string[];
  /** The SELinux label to mount it with; undefined: none. */
  readonly seLinuxLabel: string | undefined;
  /** The pod's fsGroup, if the driver applies groups itself (VOLUME_MOUNT_GROUP). */
  readonly group: number | undefined;
}

/**
 * The volume capability of a call. Pure.
 * @param knowsSingleWriters the driver's node service has SINGLE_NODE_MULTI_WRITER
 */
export function volumeCapability(
  { mode, accessMode, fsType, mountOptions, seLinuxLabel, group }: VolumeUse,
  knowsSingleWriters: boolean,
  modes: AccessModes,
): MessageInitShape<typeof VolumeCapabilitySchema> {
  return {
    accessMode: { mode: accessModeOf(accessMode, knowsSingleWriters, modes) },
    accessType:
      mode === "Block"
        ? { case: "block", value: {} }
        : {
            case: "mount",
            value: {
              fsType,
              // In quotes, because a label may contain commas.
              mountFlags: [
                ...mountOptions,
                ...(seLinuxLabel === undefined ? [] : [`context=${JSON.stringify(seLinuxLabel)}`]),
              ],
              ...(group !== undefined && { volumeMountGroup: String(group) }),
            },
          },
  };
}

function accessModeOf(
  accessMode: string,
  knowsSingleWriters: boolean,
  modes: AccessModes,
): VolumeCapability_AccessMode_Mode {
  switch (accessMode) {
    case "ReadWriteOnce":
      return knowsSingleWriters ? modes.SINGLE_NODE_MULTI_WRITER : modes.SINGLE_NODE_WRITER;
    case "ReadWriteOncePod":
      return knowsSingleWriters ? modes.SINGLE_NODE_SINGLE_WRITER : modes.SINGLE_NODE_WRITER;
    case "ReadOnlyMany":
      return modes.MULTI_NODE_READER_ONLY;
    case "ReadWriteMany":
      return modes.MULTI_NODE_MULTI_WRITER;
    default:
      return modes.UNKNOWN;
  }
}

/** What a driver with podInfoOnMount receives about the pod. Pure. */
export function podInfo({ metadata, spec }: Pod, lifecycle: LifecycleMode): Readonly<Record<string, string>> {
  return {
    "csi.storage.k8s.io/pod.name": metadata.name,
    "csi.storage.k8s.io/pod.namespace": metadata.namespace,
    "csi.storage.k8s.io/pod.uid": metadata.uid,
    "csi.storage.k8s.io/serviceAccount.name": spec.serviceAccountName ?? "",
    "csi.storage.k8s.io/ephemeral": String(lifecycle === "Ephemeral"),
  };
}

/**
 * Why the driver does not support this lifecycle mode, in upstream's words; undefined: it does. Pure.
 * @param driver undefined: it has no CSIDriver object
 */
export function lifecycleProblem(
  name: string,
  driver: Pick<CsiDriver, "spec"> | undefined,
  mode: LifecycleMode,
): string | undefined {
  const problem = `volume mode ${JSON.stringify(mode)} not supported by driver ${name}`;
  if (driver === undefined) return mode === "Persistent" ? undefined : `${problem} (no CSIDriver object)`;
  const modes = driver.spec.volumeLifecycleModes ?? [];
  if (modes.includes(mode)) return undefined;
  return `${problem} (only supports [${modes.map((each) => JSON.stringify(each)).join(" ")}])`;
}

/** The properties that decide who applies the pod's group to a volume. */
export interface GroupQuestion {
  readonly fsGroup: number | undefined;
  readonly readOnly: boolean;
  readonly fsType: string;
  /** Of the PV; undefined for an inline volume. */
  readonly accessModes: readonly string[] | undefined;
}

/**
 * Whether the kubelet applies the pod's group (upstream's supportsFSGroup); otherwise the driver does, or nobody. Pure.
 * @param policy CSIDriver's fsGroupPolicy
 */
export function givesToGroup(
  { fsGroup, readOnly, fsType, accessModes: modes }: GroupQuestion,
  policy: string,
): boolean {
  if (fsGroup === undefined || readOnly || policy === "None") return false;
  if (policy === "File") return true;
  if (fsType === "") return false;
  return modes === undefined || modes.some((mode) => mode === "ReadWriteOnce" || mode === "ReadWriteOncePod");
}

/** With the API server's default, also without an object. Pure. */
export function groupPolicy(driver: Pick<CsiDriver, "spec"> | undefined): string {
  return driver?.spec.fsGroupPolicy || "ReadWriteOnceWithFSType";
}
