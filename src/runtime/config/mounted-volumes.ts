/** A volume of a pod that is there. */
export interface MountedVolume {
  /** Where it is on the node. */
  readonly hostPath: string;
  /** Containers may only read it, whatever their mounts say. */
  readonly readOnly: boolean;
  /** Made for the pod, so that its files may be labelled for it where SELinux is on; not so paths of the node. */
  readonly own: boolean;
}

/** By the volumes' names in the pod. */
export type MountedVolumes = ReadonlyMap<string, MountedVolume>;

/** Reads files in volumes (src/volumes/). */
export interface VolumeReader {
  /**
   * What a file in a volume holds; undefined: there is none. Links are followed as far as they stay in the volume.
   * @throws FileError when the path leads out of the volume or to no file, or the file holds more than `maxBytes`
   */
  readFile(volume: MountedVolume, path: string, maxBytes: number): Promise<Uint8Array | undefined>;
}
