import { type DirectoryEntry, type Files, removeEmpty } from "../ports/files.ts";
import { csiDirectoryName } from "./names.ts";
import { identityOf, takeUpBlock, takeUpPublished, type TakeUpParts, takeUpStaged } from "./take-up.ts";
import type { UnknownVolume } from "./unknown-volumes.ts";
import { loadVolumeData, type VolumeData } from "./volume-data.ts";

/** Subdirectories other than those of block volumes; a PersistentVolume may have such a name, and is then in it as well. */
const notVolumes: ReadonlySet<string> = new Set(["staging", "publish"]);

/**
 * Finds the volumes that an earlier run left on disk: they are, or may be, staged and published. Nothing below a mount
 * point is read, because a dead server would block the start.
 * @returns those without a legible data file
 */
export async function takeUpVolumes(parts: TakeUpParts): Promise<readonly UnknownVolume[]> {
  const { files, names, devices } = parts;
  const unknown: UnknownVolume[] = [];
  for (const { name: driver } of await directoriesOf(files, names.plugin)) {
    if (driver === "volumeDevices") unknown.push(...(await takeUpBlocks(parts)));
    else unknown.push(...(await takeUpDriver(parts, driver)));
  }
  // Inline volumes are never staged; they are found when their pods are synced.
  const withMounts = devices.volumes.length === 0 ? await podsWithMounts(parts).catch(() => undefined) : undefined;
  const pods = withMounts ?? (await directoriesOf(files, names.pods)).map(({ name }) => name);
  for (const uid of pods) unknown.push(...(await takeUpPod(parts, uid)));
  return unknown;
}

async function directoriesOf(files: Pick<Files, "list">, directory: string): Promise<readonly DirectoryEntry[]> {
  return (await files.list(directory)).filter(({ type }) => type === "directory");
}

/** UIDs of pods with mounted volumes of drivers. */
async function podsWithMounts({ mounts, names }: TakeUpParts): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (const { target } of await mounts.below(names.pods)) {
    const [uid = "", parent, kind] = target.slice(names.pods.length + 1).split("/");
    if (parent === "volumes" && kind === csiDirectoryName) found.add(uid);
  }
  return found;
}

async function takeUpDriver(parts: TakeUpParts, driver: string): Promise<readonly UnknownVolume[]> {
  const { files, names } = parts;
  const unknown: UnknownVolume[] = [];
  for (const { name: hash } of await directoriesOf(files, `${names.plugin}/${driver}`)) {
    const directory = `${names.plugin}/${driver}/${hash}`;
    const data = await loadVolumeData(files, directory);
    // A data file only counts in the directory that belongs to its content.
    if (data !== undefined && names.staged(data.driverName, data.volumeHandle) === directory) {
      takeUpStaged(parts, directory, identityOf(data));
      continue;
    }
    // What cannot be removed must not keep the node from starting.
    if (data === undefined) await removeUnfinished(parts, directory).catch(() => {});
    unknown.push({ kind: "staged", driver, directory });
  }
  return unknown;
}

/** A run that ended before it wrote the data file has not called the driver. */
async function removeUnfinished(
  { files, mounts }: Pick<TakeUpParts, "files" | "mounts">,
  directory: string,
): Promise<void> {
  const entries = await files.list(directory);
  const isOthers = entries.some(({ name, type }) => name !== "globalmount" || type !== "directory");
  if (isOthers || (await mounts.below(directory)).length > 0) return;
  if (await removeEmpty(files, `${directory}/globalmount`)) await removeEmpty(files, directory);
}

async function takeUpBlocks(parts: TakeUpParts): Promise<readonly UnknownVolume[]> {
  const { files, names } = parts;
  const known: { readonly name: string; readonly data: VolumeData; readonly isStagedHere: boolean }[] = [];
  const unknown: UnknownVolume[] = [];
  const stagings = new Set((await files.list(names.blockStagings)).map(({ name }) => name));
  for (const { name } of await directoriesOf(files, `${names.plugin}/volumeDevices`)) {
    const data = await blockDataOf(parts, name);
    if (data === undefined && !notVolumes.has(name)) unknown.push({ kind: "block", name });
    else if (data !== undefined) known.push({ name, data, isStagedHere: stagings.has(name) });
  }
  // Of several PersistentVolumes of one volume, those are staged whose directories are there. A driver may have removed
  // the directory of a single one, and unstaged it or not.
  const staged = known.filter(({ isStagedHere }) => isStagedHere);
  for (const { name, data } of staged) await takeUpBlock(parts, name, identityOf(data));
  for (const { name, data, isStagedHere } of known) {
    if (isStagedHere) continue;
    const isElsewhere = staged.some((other) => isSame(other.data, data));
    await takeUpBlock(parts, name, identityOf(data), !isElsewhere);
  }
  return unknown;
}

async function blockDataOf({ files, names, mounts }: TakeUpParts, name: string): Promise<VolumeData | undefined> {
  const directory = names.blockData(name);
  // It may be a PersistentVolume's named `data`, and a driver may have mounted something there.
  const isMounted = async (): Promise<boolean> => (await mounts.below(directory)).length > 0;
  if (notVolumes.has(name) && (await isMounted().catch(() => true))) return undefined;
  return await loadVolumeData(files, directory);
}

async function takeUpPod(parts: TakeUpParts, uid: string): Promise<readonly UnknownVolume[]> {
  const { files, names } = parts;
  const pod = `${names.pods}/${uid}`;
  const unknown: UnknownVolume[] = [];
  for (const { name } of await directoriesOf(files, `${pod}/volumes/${csiDirectoryName}`)) {
    const data = await loadVolumeData(files, `${pod}/volumes/${csiDirectoryName}/${name}`);
    if (data === undefined) unknown.push({ kind: "published", uid, name });
    else takeUpPublished(parts, uid, name, identityOf(data));
  }
  for (const { name } of await files.list(`${pod}/volumeDevices/${csiDirectoryName}`)) {
    const data = await loadVolumeData(files, names.blockData(name));
    if (data !== undefined) takeUpPublished(parts, uid, name, identityOf(data));
  }
  return unknown;
}

function isSame(a: VolumeData, b: VolumeData): boolean {
  return a.driverName === b.driverName && a.volumeHandle === b.volumeHandle;
}
