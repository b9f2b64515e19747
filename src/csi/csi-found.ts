import type { Cause } from "../journal/entry.ts";
import { errorMessage } from "../base/errors.ts";
import { isUnfinishedName } from "../base/unfinished-files.ts";
import { perform } from "../journal/perform.ts";
import { unmapDevice } from "../volumes/block-map.ts";
import type { Attempts } from "../volumes/storage-waits.ts";
import type { FoundVolume, ReconstructedVolume } from "../volumes/volume-plugin.ts";
import type { Remains } from "./device-mounts.ts";
import { csiDirectoryName } from "./names.ts";
import { type FailedTry, untilDone } from "./patience.ts";
import { removeVolumeDirectory } from "./removal.ts";
import { removeBlockFiles } from "./staged-files.ts";
import { holderOf, identityOf, type VolumeIdentity } from "./take-up.ts";
import { dataFileName, loadVolumeData } from "./volume-data.ts";
import type { CsiVolumeParts } from "./volume-parts.ts";

const podHasEnded: Cause = { code: "VolumeUnwanted", message: "the pod that used the volume has ended" };

/** A volume of a pod to unpublish, as found on disk. */
interface Unpublishing {
  readonly uid: string;
  readonly name: string;
  readonly mode: FoundVolume["mode"];
  readonly identity: VolumeIdentity;
  /** The path that the driver published to. */
  readonly target: string;
  /** Runs before the driver's call. */
  readonly before?: () => Promise<void>;
  /** Runs after the driver's call. */
  readonly remove: () => Promise<Remains>;
}

type ReleaseParts = Pick<CsiVolumeParts, "publications" | "devices">;

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
  const identity = await dataOf(parts, names.blockData(name), uid, name);
  const link = paths.device(csiDirectoryName, name);
  const target = names.blockPublish(name, uid);
  const globalMap = names.blockGlobalMap(name);
  if (identity === undefined) {
    return await removedOnly(parts, [target, `${globalMap}/${uid}`], async () => {
      await unmapDevice(parts, { globalMap, uid, link });
      // The empty file that a driver has mounted the device on; without its mount it is left by a reboot.
      const left = await files.stat(target);
      if (left?.type === "file" && left.size === 0) await files.remove(target);
      await files.remove(link);
      await removeBlockFiles(parts, names, name);
    });
  }
  const before = (): Promise<void> => unmapDevice(parts, { globalMap, uid, link });
  const remove = async (): Promise<Remains> => {
    if ((await mounts.below(target)).length > 0) return "mounts";
    await files.remove(link);
    return "nothing";
  };
  return {
    driver: identity.driver,
    tearDown: async (signal, attempts) => {
      await unpublish(parts, { uid, name, mode: "Block", identity, target, before, remove }, attempts, signal);
    },
  };
}

async function foundMount(
  parts: CsiVolumeParts,
  { paths, name }: FoundVolume,
): Promise<ReconstructedVolume | undefined> {
  const directory = paths.volume(csiDirectoryName, name);
  const uid = uidOf(paths.pod);
  const target = `${directory}/mount`;
  if (await isOthers(parts, directory)) return undefined;
  const identity = await dataOf(parts, directory, uid, name);
  const remove = (): Promise<Remains> => removeVolumeDirectory(parts, directory, target);
  if (identity === undefined) return await removedOnly(parts, [directory], remove, target);
  return {
    driver: identity.driver,
    tearDown: async (signal, attempts) => {
      await unpublish(parts, { uid, name, mode: "Filesystem", identity, target, remove }, attempts, signal);
    },
  };
}

/**
 * Whether what was the kubelet's is removed, and only files of somebody else keep the directory: its volume is
 * unpublished, and would be again at each look.
 */
async function isOthers({ files, mounts }: CsiVolumeParts, directory: string): Promise<boolean> {
  const names = (await files.list(directory)).map(({ name }) => name).filter((name) => !isUnfinishedName(name));
  const isOwn = names.includes("mount") || names.includes(dataFileName);
  return names.length > 0 && !isOwn && (await mounts.below(directory)).length === 0;
}

/** What tearing a volume down needs. Its file may be damaged, as by a power failure. */
async function dataOf(
  { files, unknown }: CsiVolumeParts,
  directory: string,
  uid: string,
  name: string,
): Promise<VolumeIdentity | undefined> {
  const data = await loadVolumeData(files, directory);
  return data === undefined ? await unknown.identify(uid, name) : identityOf(data);
}

/**
 * Without mounts, a volume that nobody knows holds no data, unless files are in its target: they are nobody's to remove.
 * @param target of a file system
 */
async function removedOnly(
  { mounts, files }: CsiVolumeParts,
  directories: readonly string[],
  remove: () => Promise<unknown>,
  target?: string,
): Promise<ReconstructedVolume | undefined> {
  for (const directory of directories) if ((await mounts.below(directory)).length > 0) return undefined;
  if (target !== undefined && (await holdsFiles(files, target))) return undefined;
  return { tearDown: async () => void (await remove()) };
}

async function holdsFiles(files: CsiVolumeParts["files"], target: string): Promise<boolean> {
  const found = await files.stat(target);
  return found !== undefined && (found.type !== "directory" || (await files.list(target)).length > 0);
}

function uidOf(podDirectory: string): string {
  return podDirectory.slice(podDirectory.lastIndexOf("/") + 1);
}

/** Retries until it is unpublished, and waits for an absent driver. */
async function unpublish(
  parts: CsiVolumeParts,
  volume: Unpublishing,
  attempts: Attempts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, devices, publications, log } = parts;
  const { uid, name, identity } = volume;
  const { driver, handle } = identity;
  await untilDone(
    clock,
    `volume ${name} of pod ${uid} to be unpublished`,
    signal,
    async (): Promise<FailedTry | undefined> => {
      try {
        attempts.begins();
        await unpublishNow(parts, volume, signal);
        publications.remove(uid, name);
        devices.release(driver, handle, holderOf(uid, name));
        unlist(parts, uid, identity);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        attempts.failed(`cannot be unpublished: ${errorMessage(error)}`, error);
        log.warn("cannot unpublish a volume", { uid, volume: name, driver, error: errorMessage(error) });
        return { error, until: mayHelp(parts, driver) };
      }
    },
  );
}

/** The Node lists the volume no longer because of the pod, unless that has it by another PersistentVolume, too. */
function unlist({ publications, devices }: ReleaseParts, uid: string, { driver, handle }: VolumeIdentity): void {
  const others = publications.of(uid).map(({ publication }) => publication);
  if (!others.some((other) => other.driver === driver && other.handle === handle)) devices.unlist(driver, handle, uid);
}

/**
 * The pod's set-ups have ended: what they have staged, or had attached, and never published is not the pod's any more.
 * @param found plugins and names of the pod's volumes on disk, whose teardown releases them
 */
export function releaseUnpublished(parts: ReleaseParts, uid: string, found: ReadonlySet<string>): void {
  const { publications, devices } = parts;
  for (const { name, publication } of publications.of(uid)) {
    if (publication.state !== "absent" || found.has(`${csiDirectoryName}/${name}`)) continue;
    const { driver, handle } = publication;
    publications.remove(uid, name);
    devices.release(driver, handle, holderOf(uid, name));
    unlist(parts, uid, publication);
  }
}

/** What may let a retry succeed; undefined: nothing known. */
function mayHelp({ drivers, place }: CsiVolumeParts, driver: string): Promise<void> | undefined {
  if (!drivers.has(driver)) return drivers.registered(driver);
  return place?.problem === undefined ? undefined : place.taken;
}

async function unpublishNow(parts: CsiVolumeParts, volume: Unpublishing, signal: AbortSignal): Promise<void> {
  const { clock, journal, drivers, names, publications } = parts;
  const { uid, name, mode, identity, target, before, remove } = volume;
  const { driver, handle } = identity;
  const publication = publications.take(uid, name, identity);
  using _turn = await publications.turn(uid, name, signal);
  const client = drivers.get(driver);
  await before?.();
  // Whatever the call's outcome, the earlier state no longer holds.
  publication.state = "uncertain";
  const message = `unpublish volume ${name}`;
  const action = { what: "UnpublishVolume", message, cause: podHasEnded } as const;
  const details = { volume: name, driver, pod: uid };
  await perform(journal, clock, { ...action, data: details }, () =>
    client.unpublish(handle, names.toldToDrivers(target), { signal, mode }),
  );
  const remains = await remove();
  if (remains === "nothing") return;
  const problem = remains === "mounts" ? `something is still mounted at ${target}` : `${target} is not empty`;
  throw new Error(`${problem} after NodeUnpublishVolume`);
}
