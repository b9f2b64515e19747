import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import { type EmptyDirectories, emptyDirectory, emptyDirName } from "./empty-dir.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { isHugePageMedium } from "./huge-page-medium.ts";
import type { OwnFileSystem } from "./own-file-system.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";

type EmptyDirSource = NonNullable<Volume["emptyDir"]>;

/** `emptyDir` on the node's disk, in memory or on huge pages. */
export class EmptyDirPlugin implements VolumePlugin {
  readonly name = emptyDirName;
  readonly followsObjects = false;
  readonly #directories: EmptyDirectories;

  constructor(directories: EmptyDirectories) {
    this.#directories = directories;
  }

  owns({ volume }: VolumeSpec): boolean {
    return volume.emptyDir !== undefined;
  }

  prepare(pod: Pod, { name, volume: { emptyDir = {} } }: VolumeSpec, paths: VolumePaths): PreparedVolume {
    const directories = this.#directories;
    const place = emptyDirectory(paths, this.name, name);
    const own = this.#ownFileSystem(pod, name, emptyDir);
    return {
      name,
      type: "emptyDir",
      hostPath: place.directory,
      readOnly: false,
      own: true,
      isSetUp: () => directories.isReady(place, own),
      setUp: (signal) =>
        directories.setUp(place, own, async () => {
          await directories.giveToGroup(
            pod,
            { plugin: this.name, directory: place.directory, readOnly: false },
            signal,
          );
          if (own === undefined) await directories.giveQuota(pod, place.directory, signal);
        }),
    };
  }

  #ownFileSystem(pod: Pod, name: string, { medium = "", sizeLimit }: EmptyDirSource): OwnFileSystem | undefined {
    if (medium === "") return undefined;
    if (medium === "Memory") return this.#directories.memory(pod, name, sizeLimit);
    if (isHugePageMedium(medium)) return this.#directories.hugePages(pod, medium);
    return {
      is: () => false,
      mount: () => Promise.reject(new VolumeError(`unknown storage medium ${JSON.stringify(medium)}`)),
    };
  }

  async reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined> {
    return this.#directories.reconstruct(this.name, found);
  }
}
