import type { Pod } from "../api/pod.ts";
import { type Files, removeEmpty } from "../ports/files.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { foundLocalBlock, localBlock, type LocalBlockDependencies } from "./local-block.ts";
import { type LocalDiskDependencies, LocalDisks } from "./local-disks.ts";
import { fileSystemMeter } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";
import { mountOptionsOf, type VolumeSpec } from "./volume-spec.ts";

export interface LocalVolumeDependencies extends LocalBlockDependencies, LocalDiskDependencies {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
}

/** The plugin's directory in a pod's volumes. */
export const localVolumeDirectory = "kubernetes.io~local-volume";

/**
 * A local PersistentVolume: a directory of the node, or the file system on a device, bind-mounted for the pods that use
 * it, and never removed; or a block device itself.
 */
export class LocalVolumePlugin implements VolumePlugin {
  readonly name = localVolumeDirectory;
  readonly followsObjects = false;
  readonly #deps: LocalVolumeDependencies;
  readonly #disks: LocalDisks;

  constructor(deps: LocalVolumeDependencies) {
    this.#deps = deps;
    this.#disks = new LocalDisks(deps);
  }

  owns({ persistentVolume }: VolumeSpec): boolean {
    return persistentVolume?.spec.local !== undefined;
  }

  prepare(pod: Pod, spec: VolumeSpec, paths: VolumePaths): PreparedVolume {
    const { name, mode, readOnly } = spec;
    if (mode === "Block") return localBlock(this.#deps, pod, spec, paths);
    const directory = paths.volume(this.name, name);
    return {
      ...{ name, type: "local", hostPath: directory, readOnly, own: true },
      isSetUp: () => isMountPoint(this.#deps.mounts, directory),
      setUp: (signal) => this.#setUp(pod, spec, paths, signal),
      meter: fileSystemMeter(this.#deps.volumeFiles, directory),
    };
  }

  async reconstruct({ paths, name, mode, mounts }: FoundVolume): Promise<ReconstructedVolume | undefined> {
    if (mode === "Block") return foundLocalBlock(this.#deps, paths, name);
    const { files, mounts: mounting } = this.#deps;
    const directory = paths.volume(this.name, name);
    // Files here without a mount do not belong to the volume: they stay.
    if (mounts.length === 0 && (await files.list(directory)).length > 0) return undefined;
    const disks = this.#disks;
    const end = endOf(name);
    return {
      async tearDown() {
        // Later mounts may be on top of earlier ones.
        for (const target of mounts.toReversed()) await mounting.unmount(target);
        // Last, as the volume is found by its directory.
        await disks.released({ root: paths.root, name, end });
        await removeEmpty(files, directory);
      },
    };
  }

  async #setUp(pod: Pod, spec: VolumeSpec, paths: VolumePaths, signal: AbortSignal): Promise<void> {
    const { volumeFiles } = this.#deps;
    const { path = "" } = spec.persistentVolume?.spec.local ?? {};
    if (path.split("/").includes("..")) throw new VolumeError(`invalid path: ${path} must not contain '..'`);
    const kind = await volumeFiles.kind(path);
    if (kind === undefined) throw new VolumeError(`path ${JSON.stringify(path)} does not exist`);
    const isDevice = kind === "blockDevice";
    if (!isDevice && kind !== "directory") throw new VolumeError("only directory and block device are supported");
    // The earlier check may have failed.
    if (await isMountPoint(this.#deps.mounts, paths.volume(this.name, spec.name))) return;
    const isShared = await this.#isMounted(paths, spec.name);
    const { fsGroup: gid, fsGroupChangePolicy } = pod.spec.securityContext ?? {};
    const bind = async (from: string): Promise<void> => {
      if (isShared && gid !== undefined) await this.#compareGroups(pod, spec.name, from, gid);
      await this.#bind(spec, paths, from);
    };
    await (isDevice ? this.#disks.mounted(pod, spec, paths.root, bind) : bind(path));
    // Another pod uses it as it is.
    if (gid === undefined || spec.readOnly || isShared) return;
    const onlyOnRootMismatch = fsGroupChangePolicy === "OnRootMismatch";
    const directory = paths.volume(this.name, spec.name);
    await volumeFiles.giveToGroup(directory, { gid, readOnly: false, onlyOnRootMismatch }, signal);
  }

  async #bind(spec: VolumeSpec, paths: VolumePaths, path: string): Promise<void> {
    const { files, mounts } = this.#deps;
    const directory = paths.volume(this.name, spec.name);
    const options = [...new Set(["bind", ...(spec.readOnly ? ["ro"] : []), ...mountOptionsOf(spec)])];
    await files.makeDirectory(directory, 0o750);
    try {
      await mounts.mount({ source: path, target: directory, fileSystem: "", options });
    } catch (error) {
      await mounts.unmount(directory);
      await removeEmpty(files, directory);
      throw error;
    }
  }

  /** A volume that another pod uses keeps its group. */
  async #compareGroups(pod: Pod, name: string, path: string, gid: number): Promise<void> {
    const { volumeFiles, journal } = this.#deps;
    const found = await volumeFiles.groupOf(path);
    if (found === gid) return;
    const message = `The requested fsGroup is ${gid}, but the volume ${name} has GID ${found}. The volume may not be shareable.`;
    journal.record({ kind: "note", what: "AlreadyMountedVolume", message, pod: podRef(pod) });
  }

  async #isMounted({ root }: VolumePaths, name: string): Promise<boolean> {
    const end = endOf(name);
    return (await this.#deps.mounts.below(`${root}/pods`)).some(({ target }) => target.endsWith(end));
  }
}

/** Of the paths at which pods have a volume. */
function endOf(name: string): string {
  return `/volumes/${localVolumeDirectory}/${name}`;
}
