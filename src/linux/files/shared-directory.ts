import type { Mounts } from "../../ports/mounts.ts";
import { type MountInfo, readMountInfo } from "./mountinfo.ts";
import { systemProcesses } from "../processes/processes.ts";

const timeoutMs = 30_000;

export type Sharing = "shared" | "mount-and-share" | "share" | "has-mounts";

/**
 * The mounts that make mounts below a directory propagate to other mount namespaces. None if its mount is already
 * shared; otherwise it becomes a shared mount of its own, unless that would hide existing mounts below it. Pure.
 */
export function sharingOf(all: readonly MountInfo[], directory: string): Sharing {
  const isBelow = (path: string, parent: string): boolean => path.startsWith(parent === "/" ? "/" : `${parent}/`);
  const holders = all.filter(({ target }) => target === directory || isBelow(directory, target));
  const depth = Math.max(...holders.map(({ target }) => target.length));
  const holder = holders.findLast(({ target }) => target.length === depth);
  if (holder?.isShared === true) return "shared";
  if (holder?.target === directory) return "share";
  return all.some(({ target }) => isBelow(target, directory)) ? "has-mounts" : "mount-and-share";
}

/**
 * Shares mounts below a directory, as upstream does with the kubelet's root (MakeRShared). Without it containers cannot
 * use mountPropagation, and a Go kubelet that takes over would hide all volumes below a mount of its own.
 * @returns false when unshared volumes of pods are mounted below it: they would be hidden
 */
export async function shareDirectory(mounts: Pick<Mounts, "mount">, directory: string): Promise<boolean> {
  const sharing = sharingOf(readMountInfo(), directory);
  if (sharing === "has-mounts") return false;
  if (sharing === "mount-and-share") {
    await mounts.mount({ source: directory, target: directory, fileSystem: "", options: ["bind", "rshared"] });
  } else if (sharing === "share") {
    const { exitCode, stderr } = await systemProcesses.run("mount", ["--make-rshared", directory], { timeoutMs });
    if (exitCode !== 0) throw new Error(`cannot make ${directory} a shared mount: ${stderr.trim()}`);
  }
  return true;
}
