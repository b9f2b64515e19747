import type { Mounts } from "../../ports/mounts.ts";
import { type MountInfo, readMountInfo } from "./mountinfo.ts";
import { systemProcesses } from "../processes/processes.ts";

const timeoutMs = 30_000;

/** What has to be done so that mounts below a directory are shared with other mount namespaces. */
export type Sharing = "shared" | "mount-and-share" | "share" | "has-mounts";

/**
 * What has to be done so that what is mounted below a directory is seen in other mount namespaces: nothing where the mount
 * that holds it is shared already; else it becomes a shared mount of its own, unless something is mounted below it, which that
 * would hide. Pure.
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
 * Shares what is mounted below a directory, as upstream does with the kubelet's root (MakeRShared): without it containers
 * can't have mountPropagation, and a Go kubelet that takes over would hide all volumes below a mount of its own.
 * @returns false where pods' volumes are mounted below it that are not shared: they would be hidden
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
