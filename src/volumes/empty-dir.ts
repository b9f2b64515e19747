import type { Pod } from "../api/pod.ts";
import { dirname } from "node:path/posix";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import { limitIsDeclared, parseList, podLimits } from "../resources/pod-totals.ts";
import { parseQuantity } from "../resources/quantity.ts";
import type { MemoryVolumes } from "./memory-volumes.ts";

/** Where an empty directory is made, and on what. */
export interface EmptyDirectory {
  /** The volume's directory, absolute and without links. */
  readonly directory: string;
  /** Where the file `ready` goes. */
  readonly readyDirectory: string;
  /** Size of its own memory file system in bytes; undefined: on the node's disk. */
  readonly tmpfsBytes: bigint | undefined;
}

export interface EmptyDirDependencies {
  readonly files: Files;
  readonly mounts: Mounts;
  readonly memory: MemoryVolumes;
  /** Says that a memory volume may be swapped out. */
  readonly mayBeSwapped: () => void;
}

/**
 * Whether {@link setUpEmptyDir} finished. A memory volume must still be mounted: after a reboot the mark is there and
 * the content is gone, with the containers that wrote it.
 */
export async function isEmptyDirReady(
  { files, mounts }: EmptyDirDependencies,
  { directory, readyDirectory, tmpfsBytes }: EmptyDirectory,
): Promise<boolean> {
  if ((await files.stat(`${readyDirectory}/ready`)) === undefined) return false;
  if ((await files.stat(directory))?.type !== "directory") return false;
  return tmpfsBytes === undefined || (await isTmpfs(mounts, directory));
}

/**
 * Makes an empty directory that everybody may write to. What of it is there already is kept.
 * @param prepare what belongs to it, before it counts as ready
 */
export async function setUpEmptyDir(
  deps: EmptyDirDependencies,
  { directory, readyDirectory, tmpfsBytes }: EmptyDirectory,
  prepare: () => Promise<void>,
): Promise<void> {
  const { files, memory, mounts } = deps;
  await files.makeDirectory(dirname(directory), 0o755);
  const isMounted = tmpfsBytes !== undefined && (await isTmpfs(mounts, directory));
  if (!isMounted) {
    await files.makeDirectory(directory, 0o777);
    // One that an earlier try left may lack its mode; a mounted one has its own.
    await files.chmod(directory, 0o777);
    if (tmpfsBytes !== undefined && (await memory.mount(directory, tmpfsBytes)).mayBeSwapped) deps.mayBeSwapped();
  }
  await prepare();
  await files.makeDirectory(readyDirectory, 0o750);
  await files.write(`${readyDirectory}/ready`, "", 0o644);
}

async function isTmpfs(mounts: Mounts, directory: string): Promise<boolean> {
  return (await mounts.below(directory)).some(
    ({ target, fileSystem }) => target === directory && fileSystem === "tmpfs",
  );
}

/** Size of a memory volume: the least of its limit, the pod's memory limit and what the node gives to pods. 0: no limit. */
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
