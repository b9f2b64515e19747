import { type Files, removeEmpty } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import { dataFileName } from "./volume-data.ts";

export interface RemovalDependencies {
  readonly files: Pick<Files, "remove" | "stat">;
  readonly mounts: Pick<Mounts, "below">;
}

/**
 * Removes what the kubelet made for a volume: the directory on which its driver mounts, the data file beside it, and the directory
 * of both. Only empty directories go, and nothing on which something is mounted; it is not even looked at, as a dead server would
 * hold that up.
 * @param directory of the data file
 * @param target in it
 * @returns false: something is still mounted there, and all of it stays
 */
export async function removeVolumeDirectory(
  { files, mounts }: RemovalDependencies,
  directory: string,
  target: string,
): Promise<boolean> {
  if ((await mounts.below(directory)).length > 0) return false;
  // What is in it is the driver's, or a pod's.
  if (!(await removeEmpty(files, target))) return false;
  await files.remove(`${directory}/${dataFileName}`);
  await removeEmpty(files, directory);
  return true;
}
