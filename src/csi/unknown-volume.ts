import type { MountPoint, Mounts } from "../ports/mounts.ts";
import { csiDirectoryName, type CsiNames } from "./names.ts";

/**
 * A directory that could not be listed at the start, or a device that is not linked in each of its pods.
 * `name`: the driver's, the device's PersistentVolume's, or the pod's UID; otherwise empty.
 */
export interface UnlistedPlace {
  readonly kind: "unlisted";
  readonly what: "drivers" | "driver" | "devices" | "device" | "pods" | "pod";
  readonly name: string;
  readonly path: string;
}

/** Something of a driver on disk, without a legible data file. */
export type UnknownVolume =
  | UnlistedPlace
  | { readonly kind: "staged"; readonly driver: string; readonly directory: string }
  | { readonly kind: "published"; readonly uid: string; readonly name: string }
  | { readonly kind: "block"; readonly name: string };

/** Its directory. */
export function pathOf(names: CsiNames, volume: UnknownVolume): string {
  if (volume.kind === "unlisted") return volume.path;
  if (volume.kind === "staged") return volume.directory;
  if (volume.kind === "block") return names.blockDirectory(volume.name);
  return `${names.pods}/${volume.uid}/volumes/${csiDirectoryName}/${volume.name}`;
}

/** Whether what is mounted below its path may be a pod's. */
export function mayHoldMounts(volume: UnknownVolume): boolean {
  return volume.kind === "published" || (volume.kind === "unlisted" && ["pods", "pod"].includes(volume.what));
}

/** Whether it is a device, or may hide some. */
export function mayBeBlock(volume: UnknownVolume): boolean {
  return volume.kind === "block" || (volume.kind === "unlisted" && volume.what !== "driver");
}

/** The last mount at a path. */
export async function mountedAt(mounts: Pick<Mounts, "below">, path: string): Promise<MountPoint | undefined> {
  return (await mounts.below(path)).findLast(({ target }) => target === path);
}

/** Whether both mounts are of one file system, and the first shows what the second does, or a part of it. */
export function isPart(mount: MountPoint, whole: MountPoint): boolean {
  if (mount.device === undefined || mount.device !== whole.device) return false;
  const [part = "/", root = "/"] = [mount.root, whole.root];
  return part === root || root === "/" || part.startsWith(`${root}/`);
}
