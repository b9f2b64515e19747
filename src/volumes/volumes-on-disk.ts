import { type DirectoryEntry, type Files, removeEmpty } from "../ports/files.ts";
import { errorMessage } from "../base/errors.ts";
import { settleAll } from "../base/side-by-side.ts";
import type { PodUid } from "../base/ids.ts";
import type { PodRef } from "../journal/entry.ts";
import type { Mounts } from "../ports/mounts.ts";
import type { Clock } from "../ports/clock.ts";
import type { Attempts, StorageWaits, StorageWork } from "./storage-waits.ts";
import { Teardowns } from "./teardowns.ts";
import {
  measuredOperation,
  type OperationDependencies,
  type OperationObserver,
  pluginLabel,
} from "./volume-operations.ts";
import { isSilence } from "./volume-meter.ts";
import type { VolumePaths } from "./volume-paths.ts";
import type { ReconstructedVolume, VolumePlugin } from "./volume-plugin.ts";

/** An entry in a pod's volume directories. */
export interface DiskVolume {
  /** `volumes/kubernetes.io~csi/pvc-1` below the pod's directory. */
  readonly place: string;
  readonly name: string;
  /** Mount targets at and below it. */
  readonly mounts: readonly string[];
}

export interface OwnedVolume extends DiskVolume {
  readonly volume: ReconstructedVolume;
}

/** No plugin's: only its driver may remove it, since data may be behind it. */
export interface UnownedVolume extends DiskVolume {
  /** Only directories are left of it: it holds no data. */
  readonly isEmpty: boolean;
}

/** A pod's volumes on the node, whichever kubelet created them. */
export interface VolumesOfPod {
  readonly owned: readonly OwnedVolume[];
  readonly unowned: readonly UnownedVolume[];
  readonly subPaths: { readonly isThere: boolean; readonly mounts: readonly string[] };
  /** Plugin directories without remaining content. */
  readonly parents: readonly string[];
  /** Directories of plugins' stored data. */
  readonly memories: readonly string[];
}

interface PlacedEntry extends DirectoryEntry {
  readonly path: string;
}

/** The teardown of a pod's volumes. */
interface Together {
  readonly pod: PodRef;
  readonly paths: VolumePaths;
  readonly teardowns: Teardowns;
  readonly signal: AbortSignal;
}

/** The depth of the volume layout: the volume's directory, and its driver's mount target. */
const deepestEmpty = 2;

export interface VolumesOnDiskDependencies {
  readonly files: Files;
  readonly mounts: Mounts;
  readonly plugins: readonly VolumePlugin[];
  readonly waits: Pick<StorageWaits, "begin" | "attempts">;
  readonly clock: Clock;
  readonly observer?: OperationObserver;
  /** A pod's volume is torn down. @param key `<plugin>/<name>` */
  readonly gone?: (uid: PodUid, key: string) => void;
}

/** Finds pods' volumes on disk, and removes those of plugins. */
export class VolumesOnDisk {
  readonly #files: Files;
  readonly #mounts: Mounts;
  readonly #waits: Pick<StorageWaits, "begin" | "attempts">;
  readonly #clock: Clock;
  readonly #measuring: OperationDependencies;
  readonly #gone: VolumesOnDiskDependencies["gone"];
  readonly #plugins: ReadonlyMap<string, VolumePlugin>;

  constructor({ files, mounts, plugins, waits, clock, observer, gone }: VolumesOnDiskDependencies) {
    this.#gone = gone;
    this.#clock = clock;
    this.#measuring = { clock, observer };
    this.#files = files;
    this.#mounts = mounts;
    this.#waits = waits;
    this.#plugins = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  }

  async find(paths: VolumePaths): Promise<VolumesOfPod> {
    const targets = (await this.#mounts.below(paths.pod)).map(({ target }) => target);
    // Mount points are not accessed: the call would hang on a dead server. The target of a link is not the pod's.
    const isOwn = ({ path, type }: PlacedEntry): boolean => type === "directory" && !targets.includes(path);
    const top = new Set((await this.#entries(paths.pod)).filter(isOwn).map(({ path }) => path));
    const within = async (directory: string): Promise<PlacedEntry[]> =>
      top.has(directory) ? await this.#entries(directory) : [];
    const places = [...(await within(paths.volumes)), ...(await within(paths.devices))];
    const parents = places.filter(isOwn).map(({ path }) => path);
    const owned: OwnedVolume[] = [];
    const unowned: UnownedVolume[] = places
      .filter(({ type }) => type !== "directory")
      .map(({ path, name }) => ({
        place: below(paths, path),
        name,
        mounts: targets.filter(isAt(path)),
        isEmpty: false,
      }));
    for (const parent of parents) {
      for (const entry of await this.#entries(parent)) {
        const mounts = targets.filter(isAt(entry.path));
        const place = { place: below(paths, entry.path), name: entry.name, mounts };
        const volume = await this.#reconstruct(paths, parent, entry, mounts);
        if (volume !== undefined) owned.push({ ...place, volume });
        else unowned.push({ ...place, isEmpty: mounts.length === 0 && (await this.#isEmpty(parent, entry)) });
      }
    }
    const known = [...owned, ...unowned].map(({ place }) => isAt(`${paths.pod}/${place}`));
    const isElsewhere = (target: string): boolean =>
      target !== paths.pod && ![isAt(paths.subPaths), ...known].some((isIn) => isIn(target));
    for (const target of targets.filter(isElsewhere)) {
      unowned.push({ place: below(paths, target), name: "", mounts: [target], isEmpty: false });
    }
    const stored = (await within(paths.plugins)).filter((entry) => this.#plugins.has(entry.name) && isOwn(entry));
    const staying = unowned.filter(({ isEmpty }) => !isEmpty).map(({ place }) => `${paths.pod}/${place}`);
    const isLeft = (parent: string): boolean => !staying.some(isAt(parent));
    const subPaths = { isThere: top.has(paths.subPaths), mounts: targets.filter(isAt(paths.subPaths)) };
    const memories = stored.map(({ path }) => path);
    return { owned, unowned, subPaths, parents: parents.filter(isLeft), memories };
  }

  async #entries(directory: string): Promise<PlacedEntry[]> {
    return (await this.#files.list(directory)).map((entry) => ({ ...entry, path: `${directory}/${entry.name}` }));
  }

  /** Only pods' file systems are directories; devices are links. */
  async #reconstruct(
    paths: VolumePaths,
    parent: string,
    { name, type }: PlacedEntry,
    mounts: readonly string[],
  ): Promise<ReconstructedVolume | undefined> {
    const isDevice = parent.startsWith(`${paths.devices}/`);
    if (!isDevice && type !== "directory") return undefined;
    return await this.#pluginOf(parent)?.reconstruct({ paths, name, mode: isDevice ? "Block" : "Filesystem", mounts });
  }

  /** Removes plugins' volumes, and empty directories of unknown plugins. */
  async tearDown(pod: PodRef, paths: VolumePaths, found: VolumesOfPod, signal: AbortSignal): Promise<void> {
    const { owned, unowned, subPaths, parents, memories } = found;
    let bound = subPaths.mounts;
    // What is mounted on their directory hides them, or is below them.
    if (bound.includes(paths.subPaths)) {
      await this.#unmountAll(bound);
      bound = [];
    }
    const groups = Map.groupBy(bound, (target) => volumeOf(paths, target));
    const owners = new Set(owned.map(({ name }) => name));
    const others = [...groups].filter(([name]) => !owners.has(name));
    const together = { pod, paths, teardowns: new Teardowns(this.#clock, owned.length + others.length), signal };
    // A volume without its driver, or one that is busy, delays no other.
    await settleAll("volumes", [
      ...owned.map(async (one) => await this.#tearDownOne(together, one, groups.get(one.name) ?? [])),
      ...others.map(async ([name, targets]) => {
        await this.#repeat(together, { volume: name, driver: "subPath" }, () => this.#unmountAll(targets));
      }),
    ]);
    if (subPaths.isThere) await this.#files.removeTree(paths.subPaths, { isUnmounted: true });
    for (const { place, isEmpty } of unowned) if (isEmpty) await this.#removeEmptyTree(`${paths.pod}/${place}`);
    for (const path of memories) await this.#files.removeTree(path, { isUnmounted: true });
    for (const path of parents) await removeEmpty(this.#files, path);
  }

  /** @param bound its subPaths' mounts */
  async #tearDownOne(together: Together, one: OwnedVolume, bound: readonly string[]): Promise<void> {
    const { pod, paths, signal } = together;
    const { place, name } = one;
    const driver = one.volume.driver ?? kindOf(place);
    const operation = place.startsWith("volumeDevices/") ? "unmap_volume" : "volume_unmount";
    const label = { plugin: pluginLabel(parentOf(place)) };
    await this.#repeat(together, { volume: name, driver }, async (attempts, isAgain) => {
      // After a pause it may be mounted otherwise.
      const found = isAgain ? await this.#findAgain(paths, one) : { volume: one.volume, bound };
      await this.#unmountAll(found.bound);
      const { volume } = found;
      // It is nobody's by now, and stays.
      if (volume === undefined) return;
      const tearDown = (): Promise<void> => volume.tearDown(signal, attempts);
      // Each attempt of a driver is measured with its call.
      if (volume.driver !== undefined) await tearDown();
      else await measuredOperation(this.#measuring, operation, label, tearDown, signal);
      this.#gone?.(pod.uid, keyOf(place));
    });
  }

  async #repeat(
    { pod, teardowns, signal }: Together,
    about: Pick<StorageWork, "volume" | "driver">,
    run: (attempts: Attempts, isAgain: boolean) => Promise<void>,
  ): Promise<void> {
    const work = { ...about, pod, operation: "tear down" } as const;
    const end = this.#waits.begin(work);
    const attempts = this.#waits.attempts(work);
    let isHeld = false;
    const failed = (error: unknown): void => {
      isHeld = true;
      attempts.failed(`cannot be removed: ${errorMessage(error)}`, error);
    };
    const attempt = async (isAgain: boolean): Promise<void> => {
      if (isAgain) attempts.begins();
      await run(attempts, isAgain);
    };
    try {
      await teardowns.repeat(about.volume, attempt, failed, signal);
      end(true);
    } catch (error) {
      if (isHeld) failed(error);
      else end(!isSilence(error));
      throw error;
    }
  }

  async #findAgain(
    paths: VolumePaths,
    { place, name }: OwnedVolume,
  ): Promise<{ readonly volume: ReconstructedVolume | undefined; readonly bound: readonly string[] }> {
    const [path, own] = [`${paths.pod}/${place}`, `${paths.subPaths}/${name}`];
    const [at, bound] = await Promise.all([this.#mounts.below(path), this.#mounts.below(own)]);
    const targets = at.map(({ target }) => target);
    const type = place.startsWith("volumeDevices/") ? "symlink" : "directory";
    const parent = path.slice(0, path.lastIndexOf("/"));
    const volume = await this.#reconstruct(paths, parent, { name, type, path }, targets);
    return { volume, bound: bound.map(({ target }) => target) };
  }

  /** Later mounts may be on top of earlier ones. */
  async #unmountAll(targets: readonly string[]): Promise<void> {
    for (const target of targets.toReversed()) await this.#mounts.unmount(target);
  }

  #pluginOf(parent: string): VolumePlugin | undefined {
    return this.#plugins.get(lastOf(parent));
  }

  async #isEmpty(parent: string, { name, type }: DirectoryEntry, levels = deepestEmpty): Promise<boolean> {
    if (type !== "directory" || levels === 0) return false;
    for (const entry of await this.#files.list(`${parent}/${name}`)) {
      if (!(await this.#isEmpty(`${parent}/${name}`, entry, levels - 1))) return false;
    }
    return true;
  }

  async #removeEmptyTree(path: string): Promise<void> {
    for (const { name } of await this.#files.list(path)) await removeEmpty(this.#files, `${path}/${name}`);
    await removeEmpty(this.#files, path);
  }
}

function isAt(path: string): (target: string) => boolean {
  return (target) => target === path || target.startsWith(`${path}/`);
}

/** The name of the volume's directory, of which a mount is a subPath: `volume-subpaths/pvc-1/app/0` → `pvc-1` */
function volumeOf({ subPaths }: VolumePaths, target: string): string {
  return target.slice(subPaths.length + 1).split("/", 1)[0] ?? "";
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** `volumes/kubernetes.io~local-volume/pv-1` → `local-volume` */
function kindOf(place: string): string {
  return parentOf(place).replace(/^kubernetes\.io~/u, "");
}

/** Volumes on the node, as `<plugin>/<name>`. */
export function keysOf({ owned, unowned }: VolumesOfPod): ReadonlySet<string> {
  return new Set([...owned, ...unowned].map(({ place }) => keyOf(place)));
}

/** `volumes/kubernetes.io~csi/pvc-1` → `kubernetes.io~csi/pvc-1` */
function keyOf(place: string): string {
  return place.slice(place.indexOf("/") + 1);
}

/** `kubernetes.io~local-volume` */
function parentOf(place: string): string {
  return place.split("/").at(-2) ?? "";
}

function below({ pod }: VolumePaths, path: string): string {
  return path.slice(pod.length + 1);
}
