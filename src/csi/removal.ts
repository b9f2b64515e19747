import { removeUnfinished } from "../base/unfinished-files.ts";
import { type Files, removeEmpty } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Remains } from "./device-mounts.ts";
import { dataFileName } from "./volume-data.ts";

export interface RemovalDependencies {
  readonly files: Pick<Files, "list" | "remove" | "stat">;
  readonly mounts: Pick<Mounts, "below">;
}

/** Removes a data file, and what a kill has left of one that was being written: its directory would never be empty. */
export async function removeVolumeData(files: Pick<Files, "list" | "remove">, directory: string): Promise<void> {
  await files.remove(`${directory}/${dataFileName}`);
  await removeUnfinished(files, directory);
}

/**
 * Removes what the kubelet created for a volume: the driver's mount target, the data file next to it, and their
 * directory. Only empty directories without mounts are removed. Mount points are not accessed, because a dead server
 * would block the call.
 * @param directory of the data file
 * @param target in it
 * @returns what stays of them, with the data file
 */
export async function removeVolumeDirectory(
  { files, mounts }: RemovalDependencies,
  directory: string,
  target: string,
): Promise<Remains> {
  if ((await mounts.below(directory)).length > 0) return "mounts";
  // Content belongs to the driver, or to a pod; so does a file, of which the kubelet creates none here.
  if ((await files.stat(target))?.type === "file") return "content";
  if (!(await removeEmpty(files, target))) return "content";
  await removeVolumeData(files, directory);
  await removeEmpty(files, directory);
  return "nothing";
}
