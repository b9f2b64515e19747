import type { Pod } from "../api/pod.ts";
import { type Files, removeEmpty } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { fileSystemMeter, isSilence } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";
import type { VolumeSpec } from "./volume-spec.ts";

export interface NfsDependencies {
  readonly files: Pick<Files, "list" | "makeDirectory" | "remove">;
  readonly volumeFiles: Pick<VolumeFiles, "usage">;
  readonly mounts: Pick<Mounts, "below" | "mount" | "unmount">;
}

/**
 * `nfs`: a server's export, mounted separately for each pod. Its files belong to the server, so fsGroup does not apply.
 */
export class NfsPlugin implements VolumePlugin {
  readonly name = "kubernetes.io~nfs";
  readonly followsObjects = false;
  readonly #deps: NfsDependencies;

  constructor(deps: NfsDependencies) {
    this.#deps = deps;
  }

  owns({ volume, persistentVolume }: VolumeSpec): boolean {
    return (persistentVolume === undefined ? volume.nfs : persistentVolume.spec.nfs) !== undefined;
  }

  prepare(_pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume {
    const directory = paths.volume(this.name, spec.name);
    const { source, options } = nfsMount(spec);
    return {
      ...{ name: spec.name, type: "nfs", hostPath: directory, readOnly: options.includes("ro"), own: false },
      isSetUp: () => this.#isAt(directory),
      setUp: () => this.#setUp(directory, source, options),
      meter: fileSystemMeter(this.#deps.volumeFiles, directory),
    };
  }

  async reconstruct({ paths, name, mode, mounts }: FoundVolume): Promise<ReconstructedVolume | undefined> {
    if (mode === "Block") return undefined;
    const { files, mounts: mounting } = this.#deps;
    const directory = paths.volume(this.name, name);
    // Files here without a mount do not belong to the volume: they stay.
    if (mounts.length === 0 && (await files.list(directory)).length > 0) return undefined;
    return {
      async tearDown() {
        // Later mounts may be on top of earlier ones.
        for (const target of mounts.toReversed()) await unmount(mounting, target);
        await removeEmpty(files, directory);
      },
    };
  }

  async #setUp(directory: string, source: string, options: readonly string[]): Promise<void> {
    const { files, mounts } = this.#deps;
    // The earlier check may have failed.
    if (await this.#isAt(directory)) return;
    await files.makeDirectory(directory, 0o750);
    try {
      await mounts.mount({ source, target: directory, fileSystem: "nfs", options });
    } catch (error) {
      if (await this.#isAt(directory)) await unmount(mounts, directory);
      await removeEmpty(files, directory);
      throw error;
    }
  }

  async #isAt(directory: string): Promise<boolean> {
    return (await this.#deps.mounts.below(directory)).some(({ target }) => target === directory);
  }
}

/** The arguments for mount(8). Pure. */
export function nfsMount({ volume, persistentVolume, readOnly }: VolumeSpec): {
  readonly source: string;
  readonly options: readonly string[];
} {
  const { server = "", path = "" } = persistentVolume?.spec.nfs ?? volume.nfs ?? {};
  const isReadOnly = persistentVolume === undefined ? volume.nfs?.readOnly === true : readOnly;
  // One text may hold several options.
  const wanted = (persistentVolume?.spec.mountOptions ?? []).flatMap((text) => text.split(","));
  const options = [...(isReadOnly ? ["ro"] : []), ...wanted.filter((option) => option !== "")];
  const host = server.includes(":") && !server.startsWith("[") ? `[${server}]` : server;
  return { source: `${host}:${path}`, options: [...new Set(options)] };
}

/** A dead server blocks an unmount: force makes its pending requests fail, so that the unmount continues. */
async function unmount(mounts: Pick<Mounts, "unmount">, target: string): Promise<void> {
  try {
    await mounts.unmount(target);
  } catch (error) {
    if (!isSilence(error)) throw error;
    await mounts.unmount(target, { force: true });
  }
}
