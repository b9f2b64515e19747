import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { NotKnownYetError } from "../runtime/config/container-config-error.ts";
import type { VolumePaths } from "./volume-paths.ts";

/** One kind of volumes: how they come to be on the node, and how they go. */
export interface VolumePlugin {
  /** Upstream's, as a file name: `kubernetes.io~empty-dir`. Below it are the plugin's volumes of each pod. */
  readonly name: string;
  /** Whether the content of its volumes comes from objects, which may change while the pod runs. */
  readonly followsObjects: boolean;
  owns(volume: Volume): boolean;
  /** @throws VolumeError for a volume that it can't make */
  prepare(pod: Pod, volume: Volume, paths: VolumePaths): PreparedVolume;
  /**
   * Takes up a volume from what is in its directory: whether this life or an earlier one made it, and whatever the pod's
   * spec says by now, it is torn down by the same steps. Undefined: it is not the plugin's, and stays.
   */
  reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined>;
  /** The pod's volumes are gone: what is remembered of them goes as well. */
  forget?(uid: string): void;
}

/** One volume of one pod: where it is, and how it comes to be there. */
export interface PreparedVolume {
  readonly name: string;
  /** What kind it is, in the spec's word. */
  readonly type: string;
  /** Where it is on the node. */
  readonly hostPath: string;
  /** Containers may only read it, whatever their mounts say. */
  readonly readOnly: boolean;
  /** Whether it is made for the pod and no path of the node, so that it may be labelled for it. */
  readonly own: boolean;
  /** Whether nothing is to be done. False also when that can't be said, as an object is missing. */
  isSetUp(): Promise<boolean>;
  /** Brings it about from whatever is there. */
  setUp(signal: AbortSignal): Promise<void>;
  /** For those whose content comes from objects. */
  readonly content?: VolumeContent;
}

export interface VolumeContent {
  /** What it is made of, by identity (see payloadInputs). */
  inputs(): readonly unknown[];
  /** Whether the volume was set up before, whatever its content is. */
  isThere(): Promise<boolean>;
  /** Whether the volume was set up before and its content is not the one that its objects have by now. */
  isOutdated(): Promise<boolean>;
  update(): Promise<void>;
}

/** What is in a plugin's directory of a pod. */
export interface FoundVolume {
  readonly paths: VolumePaths;
  readonly name: string;
  /** Targets at and below its directory, in the order in which they were mounted. */
  readonly mounts: readonly string[];
}

/** A volume as it is on the node. */
export interface ReconstructedVolume {
  /** Unmounts it and removes its directory. What failed halfway is done by the next try. */
  tearDown(): Promise<void>;
}

/** What the content of a volume is made of now; undefined: it has none, or that is not known yet. */
export function knownInputs({ content }: PreparedVolume): readonly unknown[] | undefined {
  try {
    return content?.inputs();
  } catch (error) {
    if (error instanceof NotKnownYetError) return undefined;
    throw error;
  }
}
