import type { Pod } from "../api/pod.ts";
import type { VolumeMode } from "../api/persistent-volume.ts";
import type { PodUid } from "../base/ids.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { VolumeMeter } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/** One kind of volumes: how to set them up, and how to tear them down. */
export interface VolumePlugin {
  /** Upstream's, as a file name: `kubernetes.io~empty-dir`, the parent of the plugin's volumes of each pod. */
  readonly name: string;
  /** Whether its content comes from objects that may change while the pod runs. */
  readonly followsObjects: boolean;
  owns(spec: VolumeSpec): boolean;
  /** @throws VolumeError for an unsupported volume */
  prepare(pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume;
  /** What must be attached to the node before the volume is set up; undefined: nothing. */
  attachment?(spec: VolumeSpec, signal: AbortSignal): Promise<AttachmentRequest | undefined>;
  /**
   * Reconstructs a volume from its directory: whichever run set it up, and whatever the pod's spec says now, it is torn
   * down by the same steps. Undefined: not the plugin's, left alone.
   */
  reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined>;
  /** The pod's volumes are gone: forget what is stored about them. */
  forget?(uid: PodUid): void;
}

/** A volume that its driver's controller attaches to the node. */
export interface AttachmentRequest {
  /** Its name in the Node's status: `kubernetes.io/csi/<driver>^<volume handle>`. */
  readonly volumeName: string;
  /** The name of its VolumeAttachment: `csi-<sha256>`. */
  readonly attachmentName: string;
  /** Whether a full node rejects the pod (the driver has `nodeAllocatableUpdatePeriodSeconds`). */
  readonly reportsLimit: boolean;
}

/** A volume that is attached to the node. */
export interface AttachedVolume {
  readonly attachmentName: string;
  /** VolumeAttachment's `status.attachmentMetadata`: what the driver's controller tells its node part. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** One volume of one pod. */
export interface PreparedVolume {
  /** The name of its directory. */
  readonly name: string;
  /** Its kind, as the spec's field name. */
  readonly type: string;
  /** Its path on the node; of a block volume, the device or the link to it. */
  readonly hostPath: string;
  /** Read-only for containers, whatever their mounts say. */
  readonly readOnly: boolean;
  /** Whether it is created for the pod and not a host path, so it may be relabelled. */
  readonly own: boolean;
  /** Whether nothing needs to be done. False also if unknown, e.g. because an object is missing. */
  isSetUp(): Promise<boolean>;
  /**
   * Sets it up from any state.
   * @param attached what the plugin's `attachment` asked for
   * @throws VolumeOperationError when something other than the set-up itself failed
   */
  setUp(signal: AbortSignal, attached?: AttachedVolume): Promise<void>;
  /** For volumes with content from objects. */
  readonly content?: VolumeContent;
  /** The kinds of work that the volume needs while its pod runs. */
  readonly upkeeps?: readonly VolumeUpkeep[];
  /** For volumes that lead to storage of their own. */
  readonly meter?: VolumeMeter;
}

/**
 * Work on a volume of a running pod, beside the pod's steps: confirming it after a restart, publishing it again, or expanding it.
 * It is made once for a pod, and must not depend on what may change in one.
 */
export interface VolumeUpkeep {
  /** Its kind: one of each at a time. */
  readonly name: string;
  /** Whether there is something to do, from memory. */
  isDue(): boolean;
  /**
   * A failure leaves the volume as it is, and is reported by the plugin.
   * @param attached waits for what the plugin's `attachment` asks for
   */
  run(signal: AbortSignal, attached: () => Promise<AttachedVolume | undefined>): Promise<void>;
}

export interface VolumeContent {
  /** Its inputs, by identity (see payloadInputs). */
  inputs(): readonly unknown[];
  /** Whether the volume was set up before, whatever its content. */
  isThere(): Promise<boolean>;
  /** Whether the volume was set up before and its content is outdated. */
  isOutdated(): Promise<boolean>;
  update(): Promise<void>;
}

/** What is in a plugin's directory of a pod. */
export interface FoundVolume {
  readonly paths: VolumePaths;
  readonly name: string;
  /** Block: in the directory of devices, `volumeDevices`. */
  readonly mode: VolumeMode;
  /** Mount targets at and below its directory, in mount order. */
  readonly mounts: readonly string[];
}

/** A volume as found on the node. */
export interface ReconstructedVolume {
  /** Who tears it down, where that is not the plugin itself. */
  readonly driver?: string;
  /** Unmounts it and removes its directory. What failed halfway is done by the next try. */
  tearDown(signal: AbortSignal): Promise<void>;
}

/** The current inputs of the volume's content; undefined: none, or unknown yet. */
export function knownInputs({ content }: PreparedVolume): readonly unknown[] | undefined {
  try {
    return content?.inputs();
  } catch (error) {
    if (error instanceof NotKnownYetError) return undefined;
    throw error;
  }
}
