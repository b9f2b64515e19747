import type { Pod } from "../api/pod.ts";
import type { Volume } from "../api/volume.ts";
import type { PodUid } from "../base/ids.ts";
import type { Recorder } from "../journal/entry.ts";
import type { Files } from "../ports/files.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { hostPathFits, setUpHostPath } from "./host-path.ts";
import { HostPathRemarks } from "./host-path-remarks.ts";
import type { PreparedVolume, VolumePlugin } from "./volume-plugin.ts";

interface HostPathDependencies {
  readonly files: Files;
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

  owns({ hostPath }: Volume): boolean {
    return hostPath !== undefined;
  }

  prepare(pod: Pod, volume: Volume): PreparedVolume {
    const { path = "", type = "" } = volume.hostPath ?? {};
    return {
      name: volume.name,
      type: "hostPath",
      hostPath: path,
      readOnly: false,
      own: false,
      isSetUp: async () => {
        await this.#remarks.look(pod, volume);
        return await hostPathFits(this.#deps.volumeFiles, path, type);
      },
      setUp: () => setUpHostPath(this.#deps, path, type),
    };
  }

  /** Nothing of it is in the pod's directory. */
  async reconstruct(): Promise<undefined> {}

  forget(uid: PodUid): void {
    this.#remarks.forget(uid);
  }
}
