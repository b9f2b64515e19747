import { isRemote } from "./far-storage.ts";
import { currentMountTable, recentMountTable } from "./mount-table.ts";
import { type MountInfo, mountsBelow } from "./mountinfo.ts";

/**
 * Which part of a tree is its own: nothing that is mounted in it. A btrfs subvolume, which a pod can make, has a device number
 * of its own and belongs to its tree all the same.
 */
export class TreeBounds {
  readonly #root: string;
  readonly #devices = new Set<number>();
  #table: Buffer;
  #mounts: ReadonlySet<string>;

  /** @param root a path without links; a mount on the root itself belongs to the tree, unless it is remote */
  constructor(root: string) {
    this.#root = root;
    this.#table = recentMountTable();
    this.#mounts = mountTargets(this.#table, root);
  }

  /** Such a path is not accessed: a dead server would block the thread. */
  isMount(path: string): boolean {
    return this.#mounts.has(path);
  }

  /**
   * Whether what was found belongs to the tree: not if it was mounted meanwhile. The first is the root.
   * @param device its st_dev
   */
  includes(path: string, device: number): boolean {
    if (this.#devices.has(device)) return true;
    const isRoot = this.#devices.size === 0;
    // The recent table suffices for what is asked of each tree.
    const table = isRoot ? this.#table : currentMountTable();
    if (table !== this.#table) [this.#table, this.#mounts] = [table, mountTargets(table, this.#root)];
    if (this.#mounts.has(path)) return false;
    this.#devices.add(device);
    return true;
  }
}

function mountTargets(table: Buffer, root: string): ReadonlySet<string> {
  const below = mountsBelow(table, root);
  const top = below.findLast(({ target }) => target === root);
  const isOff = ({ target }: MountInfo): boolean => target !== root || isRemote(top?.fileSystem ?? "");
  return new Set(below.filter(isOff).map(({ target }) => target));
}
