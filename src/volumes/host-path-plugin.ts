import type { Pod } from "../api/pod.ts";
import type { PodUid } from "../base/ids.ts";
import type { Recorder } from "../journal/entry.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { hostPathFits, setUpHostPath } from "./host-path.ts";
import { HostPathRemarks } from "./host-path-remarks.ts";
import type { PreparedVolume, VolumePlugin } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

interface HostPathDependencies {
  readonly volumeFiles: VolumeFiles;
  readonly journal: Recorder;
}

/** `hostPath`: a path of the node, never removed. */
export class HostPathPlugin implements VolumePlugin {
  readonly name = "kubernetes.io~host-path";
  readonly followsObjects = false;
  readonly #deps: HostPathDependencies;
  readonly #remarks: HostPathRemarks;

  constructor(deps: HostPathDependencies) {
    this.#deps = deps;
    this.#remarks = new HostPathRemarks(deps);
  }

  owns({ volume, persistentVolume }: VolumeSpec): boolean {
    return volume.hostPath !== undefined || persistentVolume?.spec.hostPath !== undefined;
  }

  prepare(pod: Pod, { name, volume, persistentVolume, readOnly }: VolumeSpec): PreparedVolume {
    const { path = "", type = "" } = persistentVolume?.spec.hostPath ?? volume.hostPath ?? {};
    return {
      name,
      type: "hostPath",
      hostPath: path,
      readOnly,
      own: false,
      leavesNoTrace: persistentVolume !== undefined,
      isSetUp: async () => {
        if (volume.hostPath !== undefined) await this.#remarks.look(pod, volume);
        return await hostPathFits(this.#deps.volumeFiles, path, type);
      },
      setUp: () => setUpHostPath(this.#deps.volumeFiles, path, type),
    };
  }

  /** A host path has no files in the pod's directory. */
  async reconstruct(): Promise<undefined> {}

  forget(uid: PodUid): void {
    this.#remarks.forget(uid);
  }
}
