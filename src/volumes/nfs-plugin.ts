import type { Pod } from "../api/pod.ts";
import { type Files, removeEmpty } from "../ports/files.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { fileSystemMeter, isSilence } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";
import { mountOptionsOf, type VolumeSpec } from "./volume-spec.ts";

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
  readonly supportsMountOptions = true;
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
      isSetUp: () => isMountPoint(this.#deps.mounts, directory),
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
    if (await isMountPoint(mounts, directory)) return;
    await files.makeDirectory(directory, 0o750);
    try {
      await mounts.mount({ source, target: directory, fileSystem: "nfs", options });
    } catch (error) {
      if (await isMountPoint(mounts, directory)) await unmount(mounts, directory);
      await removeEmpty(files, directory);
      throw error;
    }
  }
}

/** The arguments for mount(8). Pure. */
export function nfsMount(spec: VolumeSpec): { readonly source: string; readonly options: readonly string[] } {
  const { volume, persistentVolume, readOnly } = spec;
  const { server = "", path = "" } = persistentVolume?.spec.nfs ?? volume.nfs ?? {};
  const isReadOnly = persistentVolume === undefined ? volume.nfs?.readOnly === true : readOnly;
  const options = [...(isReadOnly ? ["ro"] : []), ...mountOptionsOf(spec)];
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
