import { type DirectoryEntry, type Files, removeEmpty } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { DeviceMounts } from "./device-mounts.ts";
import { csiDirectoryName, type CsiNames } from "./names.ts";
import type { Publications } from "./publications.ts";
import { stagedBlockFiles, StagedMountFiles } from "./staged-files.ts";
import { loadVolumeData } from "./volume-data.ts";

export interface StartParts {
  readonly files: Files;
  readonly mounts: Pick<Mounts, "below">;
  readonly names: CsiNames;
  readonly devices: DeviceMounts;
  readonly publications: Publications;
}

/** Subdirectories other than those of block volumes. */
const notVolumes: ReadonlySet<string> = new Set(["staging", "publish"]);

/**
 * Finds the volumes that an earlier run left on disk: they are, or may be, staged and published. Nothing below a mount
 * point is read, because a dead server would block the start.
 */
export async function takeUpVolumes(parts: StartParts): Promise<void> {
  const { files, names, devices } = parts;
  for (const { name: driver, type } of await directoriesOf(files, names.plugin)) {
    if (type !== "directory") continue;
    if (driver === "volumeDevices") await takeUpBlocks(parts);
    else await takeUpStaged(parts, driver);
  }
  // Inline volumes are never staged; they are found when their pods are synced.
  if (devices.volumes.length === 0) return;
  for (const { name: uid } of await directoriesOf(files, names.pods)) await takeUpPod(parts, uid);
}

async function directoriesOf(files: Pick<Files, "list">, directory: string): Promise<readonly DirectoryEntry[]> {
  return (await files.list(directory)).filter(({ type }) => type === "directory");
}

async function takeUpStaged({ files, mounts, names, devices }: StartParts, driver: string): Promise<void> {
  for (const { name: hash } of await directoriesOf(files, `${names.plugin}/${driver}`)) {
    const directory = `${names.plugin}/${driver}/${hash}`;
    const data = await loadVolumeData(files, directory);
    if (data === undefined) await removeUnfinished({ files, mounts }, directory);
    // A data file only counts in the directory that belongs to its content.
    if (data === undefined || names.staged(data.driverName, data.volumeHandle) !== directory) continue;
    const { driverName, volumeHandle } = data;
    const stagingPath = `${directory}/globalmount`;
    const volume = { driver: driverName, handle: volumeHandle, name: volumeHandle, stagingPath };
    devices.found(volume, new StagedMountFiles({ files, mounts }, directory));
  }
}

/** A run that ended before it wrote the data file has not called the driver. */
async function removeUnfinished(
  { files, mounts }: Pick<StartParts, "files" | "mounts">,
  directory: string,
): Promise<void> {
  const entries = await files.list(directory);
  if (entries.some(({ name }) => name !== "globalmount") || (await mounts.below(directory)).length > 0) return;
  if (await removeEmpty(files, `${directory}/globalmount`)) await removeEmpty(files, directory);
}

async function takeUpBlocks({ files, mounts, names, devices }: StartParts): Promise<void> {
  for (const { name } of await directoriesOf(files, `${names.plugin}/volumeDevices`)) {
    if (notVolumes.has(name)) continue;
    const data = await loadVolumeData(files, names.blockData(name));
    if (data === undefined) continue;
    const { driverName: driver, volumeHandle: handle } = data;
    const volume = { driver, handle, name, stagingPath: names.blockStaging(name) };
    devices.found(volume, stagedBlockFiles({ files, mounts }, names));
    // A published volume without a link in its pod would never be found there, and never torn down.
    for (const { name: uid } of await files.list(names.blockPublishDirectory(name))) {
      const directory = `${names.pods}/${uid}/volumeDevices/${csiDirectoryName}`;
      if ((await files.stat(`${directory}/${name}`)) !== undefined) continue;
      await files.makeDirectory(directory, 0o750);
      await files.symlink(names.blockPublish(name, uid), `${directory}/${name}`);
    }
  }
}

async function takeUpPod({ files, names, devices, publications }: StartParts, uid: string): Promise<void> {
  const pod = `${names.pods}/${uid}`;
  for (const { name } of await directoriesOf(files, `${pod}/volumes/${csiDirectoryName}`)) {
    const data = await loadVolumeData(files, `${pod}/volumes/${csiDirectoryName}/${name}`);
    if (data === undefined) continue;
    const { driverName: driver, volumeHandle: handle } = data;
    publications.take(uid, name, { driver, handle }).state = "uncertain";
    devices.hold(driver, handle, `${uid}/${name}`);
  }
  for (const { name } of await files.list(`${pod}/volumeDevices/${csiDirectoryName}`)) {
    const data = await loadVolumeData(files, names.blockData(name));
    if (data === undefined) continue;
    const { driverName: driver, volumeHandle: handle } = data;
    publications.take(uid, name, { driver, handle }).state = "uncertain";
    devices.hold(driver, handle, `${uid}/${name}`);
  }
}
