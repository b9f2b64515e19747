import type { Pod } from "../api/pod.ts";
import { type Files, removeEmpty } from "../ports/files.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import { stateOption } from "../private-runtime/layout.ts";
import type { PathKind, VolumeFiles } from "../ports/volume-files.ts";
import { podRef } from "../runtime/pod-ref.ts";
import { VolumeError } from "../runtime/volume-error.ts";
import { claimOfDirectory } from "./claims.ts";
import { giveVolumeToGroup } from "./group-ownership.ts";
import { kindWords } from "./host-path-remarks.ts";
import { foundLocalBlock, localBlock, type LocalBlockDependencies } from "./local-block.ts";
import { type LocalDiskDependencies, LocalDisks } from "./local-disks.ts";
import { type OperationObserver, pluginLabel } from "./volume-operations.ts";
import { fileSystemMeter } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { FoundVolume, PreparedVolume, ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";
import { mountOptionsOf, type VolumeSpec } from "./volume-spec.ts";
import { Turns } from "../base/turns.ts";

export interface LocalVolumeDependencies extends LocalBlockDependencies, LocalDiskDependencies {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
  readonly observer?: OperationObserver;
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
  readonly supportsMountOptions = true;
  readonly #deps: LocalVolumeDependencies;
  readonly #disks: LocalDisks;
  readonly #turns = new Turns();

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
      // On a read-only mount nothing can be labelled.
      ...{ name, type: "local", hostPath: directory, readOnly, own: !readOnly },
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
    if (kind === undefined) throw new VolumeError(missing(path, spec));
    const isDevice = kind === "blockDevice";
    if (!isDevice && kind !== "directory") throw new VolumeError(unsuitable(path, kind, spec));
    const directory = paths.volume(this.name, spec.name);
    // Of pods that start together, only the first finds the volume unused.
    using _turn = await this.#turns.take(spec.name, signal);
    // The earlier check may have failed.
    if (await isMountPoint(this.#deps.mounts, directory)) return;
    const isShared = await this.#isMounted(paths, spec.name);
    // By it the volume is found, also if podwright ends after a device is mounted, and before the pod has it.
    await this.#deps.files.makeDirectory(directory, 0o750);
    const bind = async (from: string): Promise<void> => {
      await this.#setGroup(pod, spec, { from, directory, isShared }, signal);
      await this.#bind(spec, directory, from);
    };
    await (isDevice ? this.#disks.mounted(pod, spec, paths.root, bind) : bind(path));
  }

  /** Before it is mounted: a mounted volume is taken for one that is complete. */
  async #setGroup(
    pod: Pod,
    { name, readOnly }: VolumeSpec,
    { from, directory, isShared }: { readonly from: string; readonly directory: string; readonly isShared: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const gid = pod.spec.securityContext?.fsGroup;
    if (gid === undefined) return;
    // Another pod uses it as it is.
    if (isShared) await this.#compareGroups(pod, name, from, gid);
    else if (!readOnly) {
      const plugin = pluginLabel(this.name);
      const given = { directory: from, shown: directory, gid, followsTop: true, plugin } as const;
      await giveVolumeToGroup(this.#deps, pod, given, signal);
    }
  }

  async #bind(spec: VolumeSpec, directory: string, path: string): Promise<void> {
    const { mounts } = this.#deps;
    const options = [...new Set(["bind", ...(spec.readOnly ? ["ro"] : []), ...mountOptionsOf(spec)])];
    try {
      await mounts.mount({ source: path, target: directory, fileSystem: "", options });
    } catch (error) {
      await mounts.unmount(directory);
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

/** An empty directory in place of a claim's would hide the loss of its data, or a disk that is not mounted. */
function missing(path: string, spec: VolumeSpec): string {
  const message = `path ${JSON.stringify(path)} does not exist`;
  const claim = claimAt(spec);
  if (claim === undefined) return message;
  const why = `the directory of claim ${claim} was removed, or its disk is not mounted`;
  return `${message}: ${why}; restore it, or ${startEmpty(path, claim)}`;
}

function unsuitable(path: string, kind: PathKind, spec: VolumeSpec): string {
  // As a FIFO.
  const found = kind === "other" ? "neither" : kindWords[kind];
  const message = `path ${JSON.stringify(path)} is ${found}: only directory and block device are supported`;
  const claim = claimAt(spec);
  if (claim === undefined) return message;
  return `${message}; move it away and put the directory of claim ${claim} in its place, or ${startEmpty(path, claim)}`;
}

/** The claim whose own directory the volume is, as `namespace/name`. */
function claimAt({ persistentVolume }: VolumeSpec): string | undefined {
  return persistentVolume?.metadata.annotations?.[claimOfDirectory];
}

/** What to do if the claim's data is lost. */
function startEmpty(path: string, claim: string): string {
  const words = [...stateOption(path.slice(0, -`/volumes/${claim}`.length)), "rm", "--force", claim];
  return `stop its pods, remove the claim with 'podwright volumes ${words.join(" ")}', and run them again`;
}

/** Of the paths at which pods have a volume. */
function endOf(name: string): string {
  return `/volumes/${localVolumeDirectory}/${name}`;
}
