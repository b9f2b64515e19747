import type { PodUid } from "../base/ids.ts";
/** The paths of one pod's volumes below the node's root directory, in upstream's layout. */
export class VolumePaths {
  /** The node's root directory. */
  readonly root: string;
  /** `<root>/pods/<uid>`. */
  readonly pod: string;

  constructor(rootDirectory: string, uid: PodUid) {
    this.root = rootDirectory;
    this.pod = `${rootDirectory}/pods/${uid}`;
  }

  get volumes(): string {
    return `${this.pod}/volumes`;
  }

  /** Links to the devices of block volumes. */
  get devices(): string {
    return `${this.pod}/volumeDevices`;
  }

  /** What plugins store about the volumes. */
  get plugins(): string {
    return `${this.pod}/plugins`;
  }

  /** Bind mounts of subPaths, one for each volumeMount with a subPath. */
  get subPaths(): string {
    return `${this.pod}/volume-subpaths`;
  }

  /** @param plugin the name of a {@link VolumePlugin} */
  volume(plugin: string, name: string): string {
    return `${this.volumes}/${plugin}/${name}`;
  }

  /** @param plugin the name of a {@link VolumePlugin} */
  device(plugin: string, name: string): string {
    return `${this.devices}/${plugin}/${name}`;
  }

  /** @param volume the name of its directory */
  subPath(volume: string, container: string, index: number): string {
    return `${this.subPaths}/${volume}/${container}/${index}`;
  }
}
