import type { Cause } from "../journal/entry.ts";
import { errorMessage } from "../base/errors.ts";
import { perform } from "../journal/perform.ts";
import { unmapDevice } from "../volumes/block-map.ts";
import type { FoundVolume, ReconstructedVolume } from "../volumes/volume-plugin.ts";
import { csiDirectoryName } from "./names.ts";
import { type FailedTry, untilDone } from "./patience.ts";
import { removeVolumeDirectory } from "./removal.ts";
import { loadVolumeData, type VolumeData } from "./volume-data.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

const podHasEnded: Cause = { code: "VolumeUnwanted", message: "the pod that used the volume has ended" };

/** A volume of a pod to unpublish, as found on disk. */
interface Unpublishing {
  readonly uid: string;
  readonly name: string;
  readonly data: Pick<VolumeData, "driverName" | "volumeHandle">;
  /** The path that the driver published to. */
  readonly target: string;
  /** Runs before the driver's call. */
  readonly before?: () => Promise<void>;
  /** Runs after the driver's call. Resolves to false while something is still mounted. */
  readonly remove: () => Promise<boolean>;
}

/** The volume in a pod's directory, from its data file; undefined: it is not a CSI volume. */
export async function foundVolume(parts: CsiVolumeParts, found: FoundVolume): Promise<ReconstructedVolume | undefined> {
  return found.mode === "Filesystem" ? await foundMount(parts, found) : await foundBlock(parts, found);
}

/** Found by its link; its data file is with the devices of all pods. */
async function foundBlock(
  parts: CsiVolumeParts,
  { paths, name }: FoundVolume,
): Promise<ReconstructedVolume | undefined> {
  const { names, mounts, files } = parts;
  const uid = uidOf(paths.pod);
  const data = await dataOf(parts, names.blockData(name), uid, name);
  if (data === undefined) return undefined;
  const link = paths.device(csiDirectoryName, name);
  const target = names.blockPublish(name, uid);
  const before = (): Promise<void> => unmapDevice(parts, { globalMap: names.blockGlobalMap(name), uid, link });
  const remove = async (): Promise<boolean> => {
    if ((await mounts.below(target)).length > 0) return false;
    await files.remove(link);
    return true;
  };
  return {
    driver: data.driverName,
    tearDown: (signal) => unpublish(parts, { uid, name, data, target, before, remove }, signal),
  };
}

async function foundMount(
  parts: CsiVolumeParts,
  { paths, name }: FoundVolume,
): Promise<ReconstructedVolume | undefined> {
  const directory = paths.volume(csiDirectoryName, name);
  const uid = uidOf(paths.pod);
  const data = await dataOf(parts, directory, uid, name);
  if (data === undefined) return undefined;
  const target = `${directory}/mount`;
  const remove = (): Promise<boolean> => removeVolumeDirectory(parts, directory, target);
  return {
    driver: data.driverName,
    tearDown: (signal) => unpublish(parts, { uid, name, data, target, remove }, signal),
  };
}

/**
 * What tearing a volume down needs. Its file may be damaged, as by a power failure; then this run's own knowledge counts:
 * otherwise the volume would be unstaged and detached while it is published.
 */
async function dataOf(
  { files, publications }: CsiVolumeParts,
  directory: string,
  uid: string,
  name: string,
): Promise<Pick<VolumeData, "driverName" | "volumeHandle"> | undefined> {
  const data = await loadVolumeData(files, directory);
  if (data !== undefined) return data;
  const known = publications.get(uid, name);
  return known && { driverName: known.driver, volumeHandle: known.handle };
}

function uidOf(podDirectory: string): string {
  return podDirectory.slice(podDirectory.lastIndexOf("/") + 1);
}

/** Retries until it is unpublished, and waits for an absent driver. */
async function unpublish(parts: CsiVolumeParts, volume: Unpublishing, signal: AbortSignal): Promise<void> {
  const { clock, devices, publications, log } = parts;
  const { uid, name, data } = volume;
  const { driverName: driver, volumeHandle: handle } = data;
  await untilDone(
    clock,
    `volume ${name} of pod ${uid} to be unpublished`,
    signal,
    async (): Promise<FailedTry | undefined> => {
      try {
        await unpublishNow(parts, volume, signal);
        publications.remove(uid, name);
        devices.release(driver, handle, `${uid}/${name}`);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        log.warn("cannot unpublish a volume", { uid, volume: name, driver, error: errorMessage(error) });
        return { error, until: parts.drivers.has(driver) ? undefined : parts.drivers.registered(driver) };
      }
    },
  );
}

async function unpublishNow(parts: CsiVolumeParts, volume: Unpublishing, signal: AbortSignal): Promise<void> {
  const { clock, journal, drivers, names, publications } = parts;
  const { uid, name, data, target, before, remove } = volume;
  const publication = publications.take(uid, name, { driver: data.driverName, handle: data.volumeHandle });
  using _turn = await publications.turn(uid, name, signal);
  const client = drivers.get(data.driverName);
  await before?.();
  // Whatever the call's outcome, the earlier state no longer holds.
  publication.state = "uncertain";
  const message = `unpublish volume ${name}`;
  const action = { what: "UnpublishVolume", message, cause: podHasEnded } as const;
  const details = { volume: name, driver: data.driverName, pod: uid };
  await perform(journal, clock, { ...action, data: details }, () =>
    client.unpublish(data.volumeHandle, names.toldToDrivers(target), { signal }),
  );
  if (!(await remove())) throw new Error(`something is still mounted at ${target} after NodeUnpublishVolume`);
}
