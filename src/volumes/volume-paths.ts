/** Directory of a volume plugin: `/` of its name can't be in a file name. */
export type VolumePlugin = "empty-dir" | "configmap" | "secret" | "downward-api" | "projected";

/** Where the volumes of one pod are below the node's root directory, as upstream lays them out. */
export class VolumePaths {
  /** `<root>/pods/<uid>`. */
  readonly pod: string;

  constructor(rootDirectory: string, uid: string) {
    this.pod = `${rootDirectory}/pods/${uid}`;
  }

  get volumes(): string {
    return `${this.pod}/volumes`;
  }

  /** What plugins remember of the volumes. */
  get plugins(): string {
    return `${this.pod}/plugins`;
  }

  /** Bind mounts of parts of volumes, one for each volumeMount with a subPath. */
  get subPaths(): string {
    return `${this.pod}/volume-subpaths`;
  }

  volume(plugin: VolumePlugin, name: string): string {
    return `${this.volumes}/kubernetes.io~${plugin}/${name}`;
  }

  /** Holds a file `ready` once the directory of an emptyDir is complete. The other types stand on a hidden emptyDir. */
  readyDirectory(plugin: VolumePlugin, name: string): string {
    return `${this.plugins}/kubernetes.io~empty-dir/${plugin === "empty-dir" ? name : `wrapped_${name}`}`;
  }

  subPath(volume: string, container: string, index: number): string {
    return `${this.subPaths}/${volume}/${container}/${index}`;
  }
}
