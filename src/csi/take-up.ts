import type { Files } from "../ports/files.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { DeviceMounts } from "./device-mounts.ts";
import { csiDirectoryName, type CsiNames } from "./names.ts";
import type { LabelDecision, Publications } from "./publications.ts";
import { stagedBlockFiles, StagedMountFiles } from "./staged-files.ts";
import type { VolumeData } from "./volume-data.ts";

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
 */
export async function takeUpBlock(
  parts: TakeUpParts,
  name: string,
  id: VolumeIdentity,
  stagesHere = true,
): Promise<void> {
  const { files, names, devices } = parts;
  const { driver, handle } = id;
  const volume = { driver, handle, name, mode: "Block", stagingPath: names.blockStaging(name) } as const;
  devices.found(volume, stagedBlockFiles(parts, names), stagesHere);
  for (const { name: uid } of await files.list(names.blockPublishDirectory(name))) {
    // A published volume without a link in its pod would never be found there, and never torn down.
    const directory = `${names.pods}/${uid}/volumeDevices/${csiDirectoryName}`;
    if ((await files.stat(`${directory}/${name}`)) === undefined) {
      await files.makeDirectory(directory, 0o750);
      await files.symlink(names.blockPublish(name, uid), `${directory}/${name}`);
    }
    takeUpPublished(parts, uid, name, id);
  }
}
