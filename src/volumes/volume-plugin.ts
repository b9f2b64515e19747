import type { Pod } from "../api/pod.ts";
import type { VolumeMode } from "../api/persistent-volume.ts";
import type { Emitter } from "../base/emitter.ts";
import type { PodUid } from "../base/ids.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { Attempts } from "./storage-waits.ts";
import type { VolumeMeter } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/** A volume type: its set-up and its teardown. */
export interface VolumePlugin {
  /** Upstream's, as a file name: `kubernetes.io~empty-dir`, the parent of the plugin's volumes of each pod. */
  readonly name: string;
  /** Whether its content comes from objects that may change while the pod runs. */
  readonly followsObjects: boolean;
  /** Whether a PersistentVolume's mount options apply (upstream's SupportsMountOption); a volume with some fails otherwise. */
  readonly supportsMountOptions?: true;
  owns(spec: VolumeSpec): boolean;
  /** @throws VolumeError for an unsupported volume */
  prepare(pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume;
  /** What must be attached to the node before the volume is set up, as far as is known now; undefined: nothing. */
  attachment?(spec: VolumeSpec, signal: AbortSignal): Promise<AttachmentRequest | undefined>;
  /**
   * Reconstructs a volume from its directory, so that it is torn down by the same steps whichever run set it up and
   * whatever the pod's spec is now. Undefined: it is not this plugin's, and is left alone.
   */
  reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined>;
  /**
   * No volume of the pod is being set up any more, and its volumes are about to be torn down.
   * @param found those on the node, as `<plugin>/<name>`: it has no others, whatever its set-ups have begun
   */
  setUpsEnded?(uid: PodUid, found: ReadonlySet<string>): void;
  /** Forgets what is stored about the pod's volumes, which are gone. */
  forget?(uid: PodUid): void;
}

/** A volume that its driver's controller attaches to the node. */
export interface AttachmentRequest {
  /** Its name in the Node's status: `kubernetes.io/csi/<driver>^<volume handle>`. */
  readonly volumeName: string;
  /** The driver's own name of it, for messages. */
  readonly handle: string;
  /** The name of its VolumeAttachment: `csi-<sha256>`. */
  readonly attachmentName: string;
  /**
   * Called when the node has no place for another volume of the driver, which then rejects the pod (the driver has
   * `nodeAllocatableUpdatePeriodSeconds`); undefined: the pod waits.
   */
  readonly limitReached: (() => void) | undefined;
  /** Resolves when it may be outdated, because what it comes from has changed; undefined: it never is. */
  readonly changed: Promise<void> | undefined;
}

/** A volume that is attached to the node. */
export interface AttachedVolume {
  readonly attachmentName: string;
  /** VolumeAttachment's `status.attachmentMetadata`: from the driver's controller to its node service. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** One volume of one pod. */
export interface PreparedVolume {
  /** The name of its directory. */
  readonly name: string;
  /** Its type, as the spec's field name. */
  readonly type: string;
  /** Its path on the node; of a block volume, the device or the link to it. */
  readonly hostPath: string;
  /** Read-only for containers, whatever their mounts specify. */
  readonly readOnly: boolean;
  /** Whether it is created for the pod and not a host path, so it may be relabelled. */
  readonly own: boolean;
  /** Nothing on the node shows that it was set up for this pod: its first set-up in each run checks whether it may be used. */
  readonly leavesNoTrace?: boolean;
  /** Whether nothing needs to be done. False also if unknown, e.g. because an object is missing. */
  isSetUp(): Promise<boolean>;
  /**
   * Sets it up from any state.
   * @param attached the result of the plugin's `attachment`
   * @throws VolumeOperationError if something other than the set-up itself failed
   */
  setUp(signal: AbortSignal, attached?: AttachedVolume): Promise<void>;
  /** It is not there, whatever its calls said: the next set-up repeats them. */
  lost?(): void;
  /** For volumes with content from objects. */
  readonly content?: VolumeContent;
  /** The kinds of upkeep that the volume needs while its pod runs. */
  readonly upkeeps?: readonly VolumeUpkeep[];
  /** For volumes outside the pod. */
  readonly meter?: VolumeMeter;
}

/**
 * Work on a running pod's volume, in parallel to the pod's steps: confirming it after a restart, republishing it, or
 * expanding it. Created once per pod, so it must not depend on mutable fields of the pod.
 */
export interface VolumeUpkeep {
  /** Its kind: one of each at a time. */
  readonly name: string;
  /** Whether work is due; reads memory only. */
  isDue(): boolean;
  /**
   * A failure does not change the volume, and is reported by the plugin.
   * @param retries a user's requests to retry now what is in back-off
   */
  run(signal: AbortSignal, attachment: KeptAttachment, retries: Emitter): Promise<void>;
}

/** Whether a running pod's volume is attached. Both resolve with undefined if it needs no attachment. */
export interface KeptAttachment {
  /** Waits until it is, as a set-up does. */
  wait(): Promise<AttachedVolume | undefined>;
  /**
   * Of a volume that is published, whatever the Node lists: its VolumeAttachment as it is now.
   * @throws VolumeOperationError if it is not attached
   */
  look(): Promise<AttachedVolume | undefined>;
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

/** An entry in a plugin's directory of a pod. */
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
  /** Who tears it down, if not the plugin itself. */
  readonly driver?: string;
  /**
   * Unmounts it and removes its directory. A retry completes an interrupted teardown.
   * @param attempts receives each attempt when failed ones are repeated
   */
  tearDown(signal: AbortSignal, attempts: Attempts): Promise<void>;
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
