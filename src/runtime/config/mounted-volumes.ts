/** What the runtime mounts for an image volume. */
export interface VolumeImage {
  /** The runtime's own reference (`sha256:…`). */
  readonly imageRef: string;
  /** As in the spec. */
  readonly reference: string;
}

/** A mounted volume of a pod. */
export interface MountedVolume {
  /** Its path on the node; empty for an image, which the runtime mounts. */
  readonly hostPath: string;
  /** Set for an image volume, once its image is on the node for a container. */
  readonly image?: VolumeImage;
  /** The name of its directory, if that is not its name in the pod: its PersistentVolume's. */
  readonly directoryName?: string;
  /** Read-only for containers, whatever their mounts say. */
  readonly readOnly: boolean;
  /** Created for the pod, so its files may be relabelled for SELinux; not for host paths. */
  readonly own: boolean;
  /** The group that owns its files, of which every process of the pod is then a member. */
  readonly group?: number;
}

/** By the volumes' names in the pod. */
export type MountedVolumes = ReadonlyMap<string, MountedVolume>;

/** The groups that own files of the volumes, each once. Pure. */
export function volumeGroups(volumes: MountedVolumes): number[] {
  return [...new Set([...volumes.values()].flatMap(({ group = [] }) => group))];
}

/** Reads files in volumes (src/volumes/). */
export interface VolumeReader {
  /**
   * The content of a file in a volume; undefined: missing. Links are followed only within the volume.
   * @throws FileError when the path leaves the volume, is not a file, or holds more than `maxBytes`
   */
  readFile(volume: MountedVolume, path: string, maxBytes: number): Promise<Uint8Array | undefined>;
}
