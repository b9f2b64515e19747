import { removeEmpty } from "../ports/files.ts";
import { isCopyOfPod } from "../runtime/layout/pod-names.ts";
import { csiDirectoryName } from "./names.ts";
import {
  dataAtStart,
  identityOf,
  isAnyMounted,
  namesIn,
  takeUpBlock,
  takeUpPublished,
  type TakeUpParts,
  takeUpStaged,
} from "./take-up.ts";
import type { UnknownVolume, UnlistedPlace } from "./unknown-volume.ts";
import type { VolumeData } from "./volume-data.ts";

/** Subdirectories other than those of block volumes; a PersistentVolume may have such a name, and is then in it as well. */
const notVolumes: ReadonlySet<string> = new Set(["staging", "publish"]);

/**
 * Finds the volumes that an earlier run left on disk: they are, or may be, staged and published. Nothing below a mount
 * point is read, because a dead server would block the start. What a damaged directory or a full disk hides is unknown,
 * too: no volume prevents the start.
 * @returns those without a legible data file, and places that cannot be listed
 */
export async function takeUpVolumes(parts: TakeUpParts): Promise<readonly UnknownVolume[]> {
  const { names, devices } = parts;
  const drivers = await namesIn(parts, names.plugin);
  const unknown: UnknownVolume[] = drivers.isWhole ? [] : [placeOf(parts, "drivers")];
  for (const driver of drivers.names) {
    if (driver === "volumeDevices") unknown.push(...(await takeUpBlocks(parts)));
    else unknown.push(...(await takeUpDriver(parts, driver)));
  }
  // Inline volumes are never staged; they are found when their pods are synced.
  const isMountedOnly = devices.volumes.length === 0 && unknown.length === 0;
  const withMounts = isMountedOnly ? await podsWithMounts(parts).catch(() => undefined) : undefined;
  const pods = withMounts === undefined ? await namesIn(parts, names.pods) : { names: [...withMounts], isWhole: true };
  if (!pods.isWhole) unknown.push(placeOf(parts, "pods"));
  for (const uid of pods.names) if (await isPods(parts, uid)) unknown.push(...(await takeUpPod(parts, uid)));
  return unknown;
}

/**
 * What is in a place that could not be listed at the start, as far as it is not known; looking at it takes it up.
 * @throws FileError while it still cannot be listed
 */
export async function inPlace(parts: TakeUpParts, place: UnlistedPlace): Promise<readonly UnknownVolume[]> {
  const { names, devices, publications } = parts;
  const { what, name, path } = place;
  const list = async (directory: string): Promise<readonly string[]> =>
    (await parts.files.list(directory)).filter(({ type }) => type === "directory").map((entry) => entry.name);
  if (what === "pods") {
    const places: UnlistedPlace[] = [];
    for (const uid of await list(path)) if (await isPods(parts, uid)) places.push(placeOf(parts, "pod", uid));
    return places;
  }
  if (what === "drivers") {
    const drivers = await list(path);
    return drivers.map((each) =>
      each === "volumeDevices" ? placeOf(parts, "devices") : placeOf(parts, "driver", each),
    );
  }
  if (what === "driver") {
    const known = new Set(devices.volumes.map(({ stagingPath }) => stagingPath));
    const directories = (await list(path)).map((hash) => `${path}/${hash}`);
    return directories.flatMap((directory) =>
      known.has(`${directory}/globalmount`) ? [] : [{ kind: "staged", driver: name, directory }],
    );
  }
  if (what === "devices") {
    const known = new Set(devices.volumes.flatMap((volume) => (volume.mode === "Block" ? [volume.name] : [])));
    const volumes = (await list(path)).filter((each) => !known.has(each) && !notVolumes.has(each));
    return volumes.map((each) => ({ kind: "block", name: each }));
  }
  const volumes = (await list(path)).filter((each) => publications.get(name, each) === undefined);
  await parts.files.list(podPlaces(names, name).devices);
  return volumes.map((each) => ({ kind: "published", uid: name, name: each }));
}

function placeOf({ names }: Pick<TakeUpParts, "names">, what: UnlistedPlace["what"], name = ""): UnlistedPlace {
  const paths = {
    drivers: names.plugin,
    driver: `${names.plugin}/${name}`,
    devices: `${names.plugin}/volumeDevices`,
    device: names.blockPublishDirectory(name),
    pods: names.pods,
    pod: podPlaces(names, name).volumes,
  };
  return { kind: "unlisted", what, name, path: paths[what] };
}

function podPlaces(
  { pods }: TakeUpParts["names"],
  uid: string,
): { readonly volumes: string; readonly devices: string } {
  const pod = `${pods}/${uid}`;
  return { volumes: `${pod}/volumes/${csiDirectoryName}`, devices: `${pod}/volumeDevices/${csiDirectoryName}` };
}

/**
 * Not a copy that somebody made of a pod's directory: its data files name volumes that it does not have. Any other may be a
 * pod's that could not be recorded, and whose volume a driver is mounting.
 */
async function isPods({ files, mounts, names }: TakeUpParts, uid: string): Promise<boolean> {
  if (!(await isCopyOfPod(files, { rootDirectory: names.rootDirectory }, uid))) return true;
  const mounted = await mounts.below(`${names.pods}/${uid}`).catch(() => undefined);
  // Unknown: it may be.
  return mounted === undefined || mounted.length > 0;
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
  const { names } = parts;
  const place = placeOf(parts, "driver", driver);
  const staged = await namesIn(parts, place.path);
  const unknown: UnknownVolume[] = staged.isWhole ? [] : [place];
  for (const hash of staged.names) {
    const directory = `${place.path}/${hash}`;
    const data = await dataAtStart(parts.files, directory);
    // A data file only counts in the directory that belongs to its content.
    if (data !== undefined && names.staged(data.driverName, data.volumeHandle) === directory) {
      takeUpStaged(parts, directory, identityOf(data));
      continue;
    }
    // What cannot be removed must not keep the node from starting.
    if (data === undefined) await removeUnstaged(parts, directory).catch(() => {});
    unknown.push({ kind: "staged", driver, directory });
  }
  return unknown;
}

/** A run that ended before it wrote the data file has not called the driver. */
async function removeUnstaged(
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
  const place = placeOf(parts, "devices");
  const devices = await namesIn(parts, place.path);
  const unknown: UnknownVolume[] = devices.isWhole ? [] : [place];
  // Unknown: each may be.
  const entries = await files.list(names.blockStagings).catch(() => undefined);
  const stagings = entries && new Set(entries.map(({ name }) => name));
  for (const name of devices.names) {
    const data = await blockDataOf(parts, name);
    if (data === undefined && !notVolumes.has(name)) unknown.push({ kind: "block", name });
    else if (data !== undefined) known.push({ name, data, isStagedHere: stagings?.has(name) ?? true });
  }
  const takeUp = async (name: string, data: VolumeData, stagesHere: boolean): Promise<void> => {
    if (!(await takeUpBlock(parts, name, identityOf(data), stagesHere))) unknown.push(placeOf(parts, "device", name));
  };
  // Of several PersistentVolumes of one volume, those are staged whose directories are there. A driver may have removed
  // the directory of a single one, and unstaged it or not.
  const staged = known.filter(({ isStagedHere }) => isStagedHere);
  for (const { name, data } of staged) await takeUp(name, data, true);
  for (const { name, data, isStagedHere } of known) {
    if (isStagedHere) continue;
    const isElsewhere = staged.some((other) => isSame(other.data, data));
    await takeUp(name, data, !isElsewhere);
  }
  return unknown;
}

async function blockDataOf({ files, names, mounts }: TakeUpParts, name: string): Promise<VolumeData | undefined> {
  const directory = names.blockData(name);
  // It may be a PersistentVolume's named `data`, and a driver may have mounted something there.
  if (notVolumes.has(name) && (await isAnyMounted(mounts, [directory]).catch(() => true))) return undefined;
  return await dataAtStart(files, directory);
}

async function takeUpPod(parts: TakeUpParts, uid: string): Promise<readonly UnknownVolume[]> {
  const { files, names } = parts;
  const places = podPlaces(names, uid);
  const volumes = await namesIn(parts, places.volumes);
  const devices = await files.list(places.devices).catch(() => undefined);
  const unknown: UnknownVolume[] = volumes.isWhole && devices ? [] : [placeOf(parts, "pod", uid)];
  for (const name of volumes.names) {
    const data = await dataAtStart(files, `${places.volumes}/${name}`);
    if (data === undefined) unknown.push({ kind: "published", uid, name });
    else takeUpPublished(parts, uid, name, identityOf(data));
  }
  for (const { name } of devices ?? []) {
    const data = await dataAtStart(files, names.blockData(name));
    if (data !== undefined) takeUpPublished(parts, uid, name, identityOf(data));
  }
  return unknown;
}

function isSame(a: VolumeData, b: VolumeData): boolean {
  return a.driverName === b.driverName && a.volumeHandle === b.volumeHandle;
}
