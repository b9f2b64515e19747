import type { Pod } from "../api/pod.ts";
import type { PreparedVolume, VolumePlugin } from "./volume-plugin.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeSpec } from "./volume-spec.ts";

/**
 * `image`: the files of an image. The runtime mounts it into each container, so nothing of it is on the node before, and
 * its image is pulled as those of containers are.
 */
export class ImagePlugin implements VolumePlugin {
  readonly name = "kubernetes.io~image";
  readonly followsObjects = false;

  owns({ volume }: VolumeSpec): boolean {
    return volume.image !== undefined;
  }

  prepare(_pod: Pod, { name }: VolumeSpec, _paths: VolumePaths): PreparedVolume {
    return {
      ...{ name, type: "image", hostPath: "", readOnly: true, own: false },
      isSetUp: async () => true,
      setUp: async () => {},
    };
  }

  /** It has no files in the pod's directory. */
  async reconstruct(): Promise<undefined> {}
}
