import { dirname } from "node:path/posix";
import type { Pod } from "../api/pod.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { ResourceSettings } from "../resources/container-resources.ts";
import { limitIsDeclared, parseList, podLimits } from "../resources/pod-totals.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { measuredGroup } from "./group-ownership.ts";
import { hugePageMount, isHugePageMount } from "./huge-page-medium.ts";
import type { MemoryVolumes } from "./memory-volumes.ts";
import type { OwnFileSystem } from "./own-file-system.ts";
import { type OperationObserver, pluginLabel } from "./volume-operations.ts";
import type { FoundVolume, ReconstructedVolume } from "./volume-plugin.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { VolumeQuotas } from "./volume-quotas.ts";

export const emptyDirName = "kubernetes.io~empty-dir";

/** Where an empty directory is created. */
export interface EmptyDirectory {
  /** The volume's directory, absolute and without links. */
  readonly directory: string;
  /** The directory of the marker `ready`, written when the volume is complete. */
  readonly readyDirectory: string;
}

/** Volumes of the other types are based on a hidden emptyDir. */
export function emptyDirectory(paths: VolumePaths, plugin: string, name: string): EmptyDirectory {
  const mark = plugin === emptyDirName ? name : `wrapped_${name}`;
  return { directory: paths.volume(plugin, name), readyDirectory: `${paths.plugins}/${emptyDirName}/${mark}` };
}

export interface EmptyDirDependencies {
  readonly files: Files;
  readonly volumeFiles: VolumeFiles;
  readonly mounts: Mounts;
  readonly memory: MemoryVolumes;
  readonly resources: Pick<ResourceSettings, "allocatable">;
  /** Undefined: volumes have no quotas. */
  readonly quotas: Pick<VolumeQuotas, "assign" | "clear"> | undefined;
  readonly clock: Pick<Clock, "monotonic">;
  readonly observer?: OperationObserver;
  /** Reports that a memory volume may be swapped out. */
  readonly mayBeSwapped: (pod: Pod, volume: string) => void;
}

/** Creates and removes the directories of volumes, on the node's disk or on file systems of their own. */
export class EmptyDirectories {
  readonly #deps: EmptyDirDependencies;

  constructor(deps: EmptyDirDependencies) {
    this.#deps = deps;
  }

  /**
   * A volume's tmpfs.
   * @param sizeLimit the volume's own
   */
  memory(pod: Pod, volume: string, sizeLimit?: string | number): OwnFileSystem {
    const { memory, mayBeSwapped, resources } = this.#deps;
    return {
      is: ({ fileSystem }) => fileSystem === "tmpfs",
      mount: async (directory) => {
        const mounted = await memory.mount(directory, memoryVolumeBytes(pod, sizeLimit, resources.allocatable));
        if (mounted.mayBeSwapped) mayBeSwapped(pod, volume);
      },
    };
  }

  /** The huge pages of a volume. */
  hugePages(pod: Pod, medium: string): OwnFileSystem {
    return {
      is: (mount) => isHugePageMount(mount, medium, pod),
      mount: async (target) => {
        await this.#deps.mounts.mount({ ...hugePageMount(medium, pod), target });
      },
    };
  }

  /**
   * Whether {@link setUp} finished. A file system of its own must still be mounted: after a reboot the marker exists and
   * the content is gone, with the containers that wrote it. What a pod has mounted over it is not accessed, since its
   * server may hang.
   * @param own undefined: on the node's disk
   * @throws VolumeError if something else is mounted
   */
  async isReady({ directory, readyDirectory }: EmptyDirectory, own: OwnFileSystem | undefined): Promise<boolean> {
    const { files } = this.#deps;
    if ((await files.stat(`${readyDirectory}/ready`)) === undefined) return false;
    if (own !== undefined) return await this.#isMounted(directory, own);
    return (await isMountPoint(this.#deps.mounts, directory)) || (await files.stat(directory))?.type === "directory";
  }

  /**
   * Creates an empty directory, world-writable on disk and in memory. Existing parts are kept.
   * @param own undefined: on the node's disk
   * @param complete further set-up before it counts as ready
   * @throws VolumeError, or errors of the ports
   */
  async setUp(
    { directory, readyDirectory }: EmptyDirectory,
    own: OwnFileSystem | undefined,
    complete: () => Promise<void>,
  ): Promise<void> {
    const { files } = this.#deps;
    await files.makeDirectory(dirname(directory), 0o755);
    const isMounted = own !== undefined && (await this.#isMounted(directory, own));
    if (!isMounted) {
      // What is mounted on it has a mode of its own.
      await files.makeDirectory(directory, own === undefined ? 0o777 : 0o750);
      // One left by an earlier attempt may lack its mode.
      if (own === undefined) await files.chmod(directory, 0o777);
      else await own.mount(directory);
    }
    await complete();
    await files.makeDirectory(readyDirectory, 0o750);
    await files.write(`${readyDirectory}/ready`, "", 0o644);
  }

  /** Gives a new volume on the node's disk a quota where possible: without one its tree is walked to measure it. */
  async giveQuota(pod: Pod, directory: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#deps.quotas?.assign(pod, directory, signal);
  }

  /** Applies the pod's `fsGroup`, if any. */
  async giveToGroup(
    pod: Pod,
    {
      plugin,
      directory,
      readOnly,
    }: { readonly plugin: string; readonly directory: string; readonly readOnly: boolean },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const gid = pod.spec.securityContext?.fsGroup;
    if (gid === undefined) return;
    // fsGroupChangePolicy is for volumes that outlive pods: these are new.
    await measuredGroup(this.#deps, pluginLabel(plugin), false, () => {
      return this.#deps.volumeFiles.giveToGroup(directory, { gid, readOnly, onlyOnRootMismatch: false }, signal);
    });
  }

  /** Undefined: a device, which no directory can be. */
  reconstruct(plugin: string, { paths, name, mode, mounts }: FoundVolume): ReconstructedVolume | undefined {
    if (mode === "Block") return undefined;
    const { files, mounts: mounting, quotas } = this.#deps;
    const { directory, readyDirectory } = emptyDirectory(paths, plugin, name);
    return {
      async tearDown() {
        // Later mounts may be on top of earlier ones.
        for (const target of mounts.toReversed()) await mounting.unmount(target);
        // The marker first: a half-removed volume must not count as ready.
        await files.remove(`${readyDirectory}/ready`);
        await files.removeTree(readyDirectory, { isUnmounted: true });
        // While its directory shows that there may be one.
        await quotas?.clear(directory);
        await files.removeTree(directory, { isUnmounted: true });
      },
    };
  }

  async #isMounted(directory: string, own: OwnFileSystem): Promise<boolean> {
    const mounts = await this.#deps.mounts.below(directory);
    return mounts.some((mount) => mount.target === directory && own.is(mount));
  }
}

/** Size of a memory volume: the minimum of its limit, the pod's memory limit and node allocatable. 0: unlimited. */
export function memoryVolumeBytes(
  pod: Pod,
  sizeLimit: string | number | undefined,
  allocatable: Readonly<Record<string, string | number>>,
): bigint {
  const podLimit = limitIsDeclared(pod, "memory") ? podLimits(pod).get("memory")?.value() : undefined;
  const own = sizeLimit === undefined ? undefined : parseQuantity(sizeLimit).value();
  const limits = [parseList(allocatable).get("memory")?.value(), podLimit, own];
  return limits.reduce<bigint>((least, limit) => {
    if (limit === undefined || limit <= 0n) return least;
    return least === 0n || limit < least ? limit : least;
  }, 0n);
}
