import { dirname } from "node:path/posix";
import type { Pod } from "../api/pod.ts";
import type { Clock } from "../ports/clock.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { VolumeFiles } from "../ports/volume-files.ts";
import type { ResourceSettings } from "../resources/container-resources.ts";
import { limitIsDeclared, parseList, podLimits } from "../resources/pod-totals.ts";
import { parseQuantity } from "../resources/quantity.ts";
import { measuredGroup } from "./group-ownership.ts";
import type { MemoryVolumes } from "./memory-volumes.ts";
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

/** Creates and removes the directories of volumes, on the node's disk or on their own tmpfs. */
export class EmptyDirectories {
  readonly #deps: EmptyDirDependencies;

  constructor(deps: EmptyDirDependencies) {
    this.#deps = deps;
  }

  /**
   * Size of a volume's tmpfs in bytes.
   * @param sizeLimit the volume's own
   */
  memoryBytes(pod: Pod, sizeLimit?: string | number): bigint {
    return memoryVolumeBytes(pod, sizeLimit, this.#deps.resources.allocatable);
  }

  /**
   * Whether {@link setUp} finished. A memory volume must still be mounted: after a reboot the marker exists and the
   * content is gone, with the containers that wrote it.
   */
  async isReady({ directory, readyDirectory }: EmptyDirectory, inMemory: boolean): Promise<boolean> {
    const { files } = this.#deps;
    if ((await files.stat(`${readyDirectory}/ready`)) === undefined) return false;
    if ((await files.stat(directory))?.type !== "directory") return false;
    return !inMemory || (await this.#isTmpfs(directory));
  }

  /**
   * Creates an empty world-writable directory. Existing parts are kept.
   * @param tmpfsBytes undefined: on the node's disk
   * @param complete further set-up before it counts as ready
   */
  async setUp(
    { pod, volume }: { readonly pod: Pod; readonly volume: string },
    { directory, readyDirectory }: EmptyDirectory,
    tmpfsBytes: bigint | undefined,
    complete: () => Promise<void>,
  ): Promise<void> {
    const { files, memory, mayBeSwapped } = this.#deps;
    await files.makeDirectory(dirname(directory), 0o755);
    const isMounted = tmpfsBytes !== undefined && (await this.#isTmpfs(directory));
    if (!isMounted) {
      // What is mounted on it has a mode of its own.
      await files.makeDirectory(directory, tmpfsBytes === undefined ? 0o777 : 0o750);
      // One left by an earlier attempt may lack its mode.
      if (tmpfsBytes === undefined) await files.chmod(directory, 0o777);
      else {
        const mounted = await memory.mount(directory, tmpfsBytes);
        if (mounted.mayBeSwapped) mayBeSwapped(pod, volume);
      }
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

  async #isTmpfs(directory: string): Promise<boolean> {
    return (await this.#deps.mounts.below(directory)).some(
      ({ target, fileSystem }) => target === directory && fileSystem === "tmpfs",
    );
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
