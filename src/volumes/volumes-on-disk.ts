import { type DirectoryEntry, type Files, removeEmpty } from "../ports/files.ts";
import { settleAll } from "../base/side-by-side.ts";
import type { Mounts } from "../ports/mounts.ts";
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

/** A pod's volumes on the node, whoever made them. */
export interface VolumesOfPod {
  readonly owned: readonly OwnedVolume[];
  readonly unowned: readonly UnownedVolume[];
  readonly subPaths: { readonly isThere: boolean; readonly mounts: readonly string[] };
  /** Plugin directories without remaining content. */
  readonly parents: readonly string[];
  /** Directories of what plugins store. */
  readonly memories: readonly string[];
}

/** The depth of the volume layout: the volume's directory, and what its driver mounts on. */
const deepestEmpty = 2;

/** Finds pods' volumes on disk, and removes those of plugins. */
export class VolumesOnDisk {
  readonly #files: Files;
  readonly #mounts: Mounts;
  readonly #plugins: ReadonlyMap<string, VolumePlugin>;

  constructor(files: Files, mounts: Mounts, plugins: readonly VolumePlugin[]) {
    this.#files = files;
    this.#mounts = mounts;
    this.#plugins = new Map(plugins.map((plugin) => [plugin.name, plugin]));
  }

  async find(paths: VolumePaths): Promise<VolumesOfPod> {
    const targets = (await this.#mounts.below(paths.pod)).map(({ target }) => target);
    const top = new Set((await this.#files.list(paths.pod)).map(({ name }) => `${paths.pod}/${name}`));
    const within = async (directory: string): Promise<string[]> =>
      top.has(directory) ? (await this.#files.list(directory)).map(({ name }) => `${directory}/${name}`) : [];
    // Mount points are not accessed: the call would hang on a dead server.
    const isOpen = (path: string): boolean => !targets.includes(path);
    const parents = [...(await within(paths.volumes)), ...(await within(paths.devices))].filter(isOpen);
    const owned: OwnedVolume[] = [];
    const unowned: UnownedVolume[] = [];
    for (const parent of parents) {
      for (const entry of await this.#files.list(parent)) {
        const volume = { place: below(paths, `${parent}/${entry.name}`), name: entry.name };
        const mounts = targets.filter(isAt(`${parent}/${entry.name}`));
        const mode = parent.startsWith(`${paths.devices}/`) ? "Block" : "Filesystem";
        const reconstructed = await this.#pluginOf(parent)?.reconstruct({ paths, name: entry.name, mode, mounts });
        if (reconstructed !== undefined) owned.push({ ...volume, mounts, volume: reconstructed });
        else unowned.push({ ...volume, mounts, isEmpty: mounts.length === 0 && (await this.#isEmpty(parent, entry)) });
      }
    }
    const known = [...owned, ...unowned].map(({ place }) => isAt(`${paths.pod}/${place}`));
    const isElsewhere = (target: string): boolean =>
      target !== paths.pod && ![isAt(paths.subPaths), ...known].some((isIn) => isIn(target));
    for (const target of targets.filter(isElsewhere)) {
      unowned.push({ place: below(paths, target), name: "", mounts: [target], isEmpty: false });
    }
    const memories = (await within(paths.plugins)).filter((path) => this.#plugins.has(lastOf(path)) && isOpen(path));
    const staying = unowned.filter(({ isEmpty }) => !isEmpty).map(({ place }) => `${paths.pod}/${place}`);
    const isLeft = (parent: string): boolean => !staying.some(isAt(parent));
    const subPaths = { isThere: top.has(paths.subPaths), mounts: targets.filter(isAt(paths.subPaths)) };
    return { owned, unowned, subPaths, parents: parents.filter(isLeft), memories };
  }

  /** Removes plugins' volumes, and empty directories of the rest. */
  async tearDown(paths: VolumePaths, found: VolumesOfPod, signal: AbortSignal): Promise<void> {
    const { owned, unowned, subPaths, parents, memories } = found;
    // subPaths are mounted after these, and later mounts may be on top of earlier ones.
    for (const target of subPaths.mounts.toReversed()) await this.#mounts.unmount(target);
    if (subPaths.isThere) await this.#files.removeTree(paths.subPaths, { isUnmounted: true });
    // One whose driver is away holds up no other.
    await settleAll(
      "volumes",
      owned.map(async ({ volume }) => await volume.tearDown(signal)),
    );
    for (const { place, isEmpty } of unowned) if (isEmpty) await this.#removeEmptyTree(`${paths.pod}/${place}`);
    for (const path of memories) await this.#files.removeTree(path, { isUnmounted: true });
    for (const path of parents) await removeEmpty(this.#files, path);
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

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function below({ pod }: VolumePaths, path: string): string {
  return path.slice(pod.length + 1);
}
