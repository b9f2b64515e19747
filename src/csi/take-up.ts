import { removeUnfinished } from "../base/unfinished-files.ts";
import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { DeviceMounts } from "./device-mounts.ts";
import { csiDirectoryName, type CsiNames } from "./names.ts";
import type { LabelDecision, Publications } from "./publications.ts";
import { stagedBlockFiles, StagedMountFiles } from "./staged-files.ts";
import { loadVolumeData, type VolumeData } from "./volume-data.ts";

/** Which volume of which driver it is. */
export interface VolumeIdentity {
  readonly driver: string;
  readonly handle: string;
  /** Undefined: not known. */
  readonly seLinux?: LabelDecision | undefined;
}

export function identityOf({ driverName: driver, volumeHandle: handle, seLinuxLabel }: VolumeData): VolumeIdentity {
  return { driver, handle, seLinux: { label: seLinuxLabel } };
}

export interface TakeUpParts {
  readonly files: Files;
  readonly mounts: Pick<Mounts, "below">;
  readonly names: CsiNames;
  readonly devices: DeviceMounts;
  readonly publications: Publications;
}

/** A pod's volume, as a holder of what it is published from. */
export function holderOf(uid: string, name: string): string {
  return `${uid}/${name}`;
}

/** Names in a directory. Not whole: it cannot be listed, and these are only those in which something is mounted. */
export interface NamesIn {
  readonly names: readonly string[];
  readonly isWhole: boolean;
}

/** The subdirectories of a directory; of one that cannot be listed those with mounts, as far as these can be read. */
export async function namesIn(
  { files, mounts }: Pick<TakeUpParts, "files" | "mounts">,
  directory: string,
): Promise<NamesIn> {
  try {
    const entries = await files.list(directory);
    return { names: entries.filter(({ type }) => type === "directory").map(({ name }) => name), isWhole: true };
  } catch {
    const all = await mounts.below(directory).catch(() => []);
    const targets = all.filter(({ target }) => target !== directory);
    const names = targets.map(({ target }) => target.slice(directory.length + 1).split("/", 1)[0] ?? "");
    return { names: [...new Set(names)], isWhole: false };
  }
}

/**
 * The data file of an earlier run, in whose directory nothing is being written yet. What a kill has left of one is
 * removed: another kubelet, which takes over here, would not, and its pod would wait forever.
 */
export async function dataAtStart(
  files: Pick<Files, "list" | "read" | "remove">,
  directory: string,
): Promise<VolumeData | undefined> {
  await removeUnfinished(files, directory).catch(() => {});
  return await dataIn(files, directory);
}

/** Undefined: there is none that can be read, for whatever reason. */
export async function dataIn(files: Pick<Files, "read">, directory: string): Promise<VolumeData | undefined> {
  return await loadVolumeData(files, directory).catch(() => undefined);
}

/** Whether something is mounted at or below one of the paths. */
export async function isAnyMounted(mounts: Pick<Mounts, "below">, paths: readonly string[]): Promise<boolean> {
  for (const path of paths) if ((await mounts.below(path)).length > 0) return true;
  return false;
}

/** A staged file system that an earlier run left. */
export function takeUpStaged(parts: TakeUpParts, directory: string, { driver, handle, seLinux }: VolumeIdentity): void {
  const place = { name: handle, mode: "Filesystem", stagingPath: `${directory}/globalmount` } as const;
  const volume = { driver, handle, ...place, seLinuxLabel: seLinux?.label };
  parts.devices.found(volume, new StagedMountFiles(parts, directory));
}

/** A pod's volume that an earlier run left. */
export function takeUpPublished(
  { devices, publications, names }: Omit<TakeUpParts, "files" | "mounts">,
  uid: string,
  name: string,
  id: VolumeIdentity,
): void {
  const publication = publications.take(uid, name, id);
  if (publication.state === "absent") publication.state = "uncertain";
  publication.seLinux ??= id.seLinux;
  devices.hold(id.driver, id.handle, holderOf(uid, name));
  // Whether it was staged or not, nothing else lists it before its pod is synced, and an orphan never is.
  if (id.handle !== names.inlineHandle(uid, name)) devices.listInUse(id.driver, id.handle, uid);
}

/**
 * A device that an earlier run left, for every pod that has it.
 * @param stagesHere as for DeviceMounts.found
 * @returns false: pods may have it that are not known, or in which it is not found, because of a damaged or full disk
 */
export async function takeUpBlock(
  parts: TakeUpParts,
  name: string,
  id: VolumeIdentity,
  stagesHere = true,
): Promise<boolean> {
  const { names, devices } = parts;
  const { driver, handle } = id;
  const volume = { driver, handle, name, mode: "Block", stagingPath: names.blockStaging(name) } as const;
  devices.found(volume, stagedBlockFiles(parts, names), stagesHere);
  return await takeUpPublishedBlock(parts, name, id);
}

/** The same without what it is published from. */
export async function takeUpPublishedBlock(parts: TakeUpParts, name: string, id: VolumeIdentity): Promise<boolean> {
  const { names } = parts;
  const published = await publishedTo(parts, name);
  let isWhole = published.isWhole;
  for (const uid of published.names) {
    const place = { directory: `${names.pods}/${uid}/volumeDevices/${csiDirectoryName}`, uid, name };
    isWhole = (await isLinked(parts, place)) && isWhole;
    takeUpPublished(parts, uid, name, id);
  }
  return isWhole;
}

/** UIDs of the pods with the device. */
async function publishedTo(parts: TakeUpParts, name: string): Promise<NamesIn> {
  const directory = parts.names.blockPublishDirectory(name);
  try {
    return { names: (await parts.files.list(directory)).map((entry) => entry.name), isWhole: true };
  } catch {
    const mounted = [directory, parts.names.blockGlobalMap(name)].map((at) => namesIn(parts, at));
    const names = (await Promise.all(mounted)).flatMap((each) => each.names);
    return { names: [...new Set(names)], isWhole: false };
  }
}

/** A published volume without a link in its pod would never be found there, and never torn down. */
async function isLinked(
  { files, names }: TakeUpParts,
  { directory, uid, name }: { readonly directory: string; readonly uid: string; readonly name: string },
): Promise<boolean> {
  try {
    if ((await files.stat(`${directory}/${name}`)) === undefined) {
      await files.makeDirectory(directory, 0o750);
      await files.symlink(names.blockPublish(name, uid), `${directory}/${name}`);
    }
    return true;
  } catch {
    return false;
  }
}
