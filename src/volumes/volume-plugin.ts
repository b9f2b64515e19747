import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { PodUid } from "../base/ids.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { VolumePaths } from "./volume-paths.ts";

/** One kind of volumes: how to set them up, and how to tear them down. */
export interface VolumePlugin {
  /** Upstream's, as a file name: `kubernetes.io~empty-dir`, the parent of the plugin's volumes of each pod. */
  readonly name: string;
  /** Whether its content comes from objects that may change while the pod runs. */
  readonly followsObjects: boolean;
  owns(volume: Volume): boolean;
  /** @throws VolumeError for an unsupported volume */
  prepare(pod: Pod, volume: Volume, paths: VolumePaths): PreparedVolume;
  /**
   * Reconstructs a volume from its directory: whichever run set it up, and whatever the pod's spec says now, it is torn
   * down by the same steps. Undefined: not the plugin's, left alone.
   */
  reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined>;
  /** The pod's volumes are gone: forget what is stored about them. */
  forget?(uid: PodUid): void;
}

/** One volume of one pod. */
export interface PreparedVolume {
  readonly name: string;
  /** Its kind, as the spec's field name. */
  readonly type: string;
  /** Its path on the node. */
  readonly hostPath: string;
  /** Read-only for containers, whatever their mounts say. */
  readonly readOnly: boolean;
  /** Whether it is created for the pod and not a host path, so it may be relabelled. */
  readonly own: boolean;
  /** Whether nothing needs to be done. False also if unknown, e.g. because an object is missing. */
  isSetUp(): Promise<boolean>;
  /** Sets it up from any state. */
  setUp(signal: AbortSignal): Promise<void>;
  /** For volumes with content from objects. */
  readonly content?: VolumeContent;
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
  /** Mount targets at and below its directory, in mount order. */
  readonly mounts: readonly string[];
}

/** A volume as found on the node. */
export interface ReconstructedVolume {
  /** Unmounts it and removes its directory. What failed halfway is done by the next try. */
  tearDown(): Promise<void>;
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
