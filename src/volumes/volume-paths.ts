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

  /** Block devices that drivers of another kubelet gave the pod. */
  get devices(): string {
    return `${this.pod}/volumeDevices`;
  }

  /** What plugins remember of the volumes. */
  get plugins(): string {
    return `${this.pod}/plugins`;
  }

  /** Bind mounts of parts of volumes, one for each volumeMount with a subPath. */
  get subPaths(): string {
    return `${this.pod}/volume-subpaths`;
  }

  /** @param plugin the name of a {@link VolumePlugin} */
  volume(plugin: string, name: string): string {
    return `${this.volumes}/${plugin}/${name}`;
  }

  subPath(volume: string, container: string, index: number): string {
    return `${this.subPaths}/${volume}/${container}/${index}`;
  }
}
