import type { Pod } from "../api/pod.ts";
import { type EmptyDirectories, emptyDirectory, emptyDirName } from "./empty-dir.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";

/** `emptyDir` on the node's disk or in memory. */
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
    const { medium = "", sizeLimit } = emptyDir;
    if (medium !== "" && medium !== "Memory") throw new VolumeError(`emptyDir medium ${medium} is not supported`);
    const directories = this.#directories;
    const place = emptyDirectory(paths, this.name, name);
    const bytes = medium === "Memory" ? directories.memoryBytes(pod, sizeLimit) : undefined;
    return {
      name,
      type: "emptyDir",
      hostPath: place.directory,
      readOnly: false,
      own: true,
      isSetUp: () => directories.isReady(place, bytes !== undefined),
      setUp: (signal) =>
        directories.setUp({ pod, volume: name }, place, bytes, async () => {
          await directories.giveToGroup(
            pod,
            { plugin: this.name, directory: place.directory, readOnly: false },
            signal,
          );
          if (bytes === undefined) await directories.giveQuota(pod, place.directory, signal);
        }),
    };
  }

  async reconstruct(found: FoundVolume): Promise<ReconstructedVolume | undefined> {
    return this.#directories.reconstruct(this.name, found);
  }
}
