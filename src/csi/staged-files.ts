import type { Files } from "../ports/files.ts";
import { removeEmpty } from "../ports/files.ts";
import { isMountPoint, type Mounts } from "../ports/mounts.ts";
import type { Remains, StageableVolume, StagedFiles } from "./device-mounts.ts";
import type { CsiNames } from "./names.ts";
import { removeVolumeData, removeVolumeDirectory } from "./removal.ts";
import { saveVolumeData } from "./volume-data.ts";

export interface StagedFilesParts {
  readonly files: Pick<Files, "list" | "makeDirectory" | "writeAtomic" | "remove" | "stat">;
  readonly mounts: Pick<Mounts, "below">;
}

/** The files of a staged file system: `vol_data.json` and `globalmount` in its directory. */
export class StagedMountFiles implements StagedFiles {
  readonly #parts: StagedFilesParts;
  readonly #directory: string;

  constructor(parts: StagedFilesParts, directory: string) {
    this.#parts = parts;
    this.#directory = directory;
  }

  async save({ driver, handle, seLinuxLabel }: StageableVolume): Promise<void> {
    const { files } = this.#parts;
    await makeTarget(this.#parts, this.#target);
    await saveVolumeData(files, this.#directory, { driverName: driver, volumeHandle: handle, seLinuxLabel });
  }

  async remove(): Promise<Remains> {
    const remains = await removeVolumeDirectory(this.#parts, this.#directory, this.#target);
    // Otherwise each start would unstage it again.
    if (remains === "content") await removeVolumeData(this.#parts.files, this.#directory);
    return remains;
  }

  get #target(): string {
    return `${this.#directory}/globalmount`;
  }
}

/** The same for a block volume, whose data file is with the devices of its pods. */
export function stagedBlockFiles({ files, mounts }: StagedFilesParts, names: CsiNames): StagedFiles {
  return {
    save: async (volume, stagesHere) => {
      await saveBlockData({ files, mounts }, names, volume);
      if (stagesHere) await makeTarget({ files, mounts }, names.blockStaging(volume.name));
    },
    remove: async ({ name }) => await removeBlockFiles({ files, mounts }, names, name),
  };
}

/** What may be mounted there is not accessed: a dead server would block the call. */
async function makeTarget({ files, mounts }: StagedFilesParts, target: string): Promise<void> {
  if (!(await isMountPoint(mounts, target))) await files.makeDirectory(target, 0o750);
}

/** Removes what the kubelet created for a block volume, unless something is mounted there; a driver's files stay. */
export async function removeBlockFiles(
  { files, mounts }: StagedFilesParts,
  names: CsiNames,
  name: string,
): Promise<Remains> {
  for (const place of names.blockPlaces(name)) if ((await mounts.below(place)).length > 0) return "mounts";
  await removeEmpty(files, names.blockPublishDirectory(name));
  const isEmpty = await removeEmpty(files, names.blockStaging(name));
  if (!(await removeEmpty(files, names.blockGlobalMap(name)))) return "content";
  await removeVolumeData(files, names.blockData(name));
  await removeEmpty(files, names.blockData(name));
  await removeEmpty(files, names.blockDirectory(name));
  return isEmpty ? "nothing" : "content";
}

/** Required to tear down a block volume, staged or not. */
export async function saveBlockData(
  { files }: StagedFilesParts,
  names: CsiNames,
  { driver, handle, name }: StageableVolume,
): Promise<void> {
  await files.makeDirectory(names.blockData(name), 0o750);
  await saveVolumeData(files, names.blockData(name), {
    attachmentId: names.attachment(driver, handle),
    driverName: driver,
    nodeName: names.nodeName,
    specVolumeId: name,
    volumeHandle: handle,
  });
}
