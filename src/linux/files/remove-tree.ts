import { randomBytes } from "node:crypto";
import { constants, fstatSync, readFileSync } from "node:fs";
import { opendir } from "node:fs/promises";
import { dirname } from "node:path";
import { FileError, type RemoveTreeOptions } from "../../ports/files.ts";
import { errnoOf } from "../file-error.ts";
import { Closing, type Descriptor, threadCalls as calls } from "./calls.ts";
import { currentMountTable } from "./mount-table.ts";
import { mountsBelow } from "./mountinfo.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/**
 * How many levels are opened at a time. Deeper directories are first moved up to the root: a pod can nest directories
 * deeper than PATH_MAX and the limit of file descriptors.
 */
const deepest = 32;

/** How many btrfs subvolumes, one in another, are entered at a time. */
const deepestSubvolumes = 4;

/** Directories up to this size are read at once; a pod can make one whose names would fill the memory. */
const smallDirectoryBytes = 64 * 1024;

/** Where a directory is: a btrfs moves no directory to another subvolume, except the subvolumes themselves. */
interface Place {
  /** The top of the tree, or of the subvolume in it. */
  readonly top: Descriptor;
  /** The device number of everything there. */
  readonly device: number;
  /** Levels below `top`. */
  readonly depth: number;
  /** How many subvolumes of the tree it is in. */
  readonly subvolumes: number;
}

/**
 * Removes a tree that may be hostile: a pod filled it, and may still be changing it.
 *
 * Every directory is opened without following links, and its entries are reached through that descriptor, so swapping a
 * directory for a link has no effect. A mount at or below `path` (also a bind mount of the same file system) rejects
 * with `EBUSY` before anything is removed, unless the caller has checked; a mount that appears meanwhile, at or below
 * it, is never entered. A failure does not stop the removal of the rest; then the first error is thrown.
 */
export async function removeTree(path: string, { isUnmounted = false }: RemoveTreeOptions = {}): Promise<void> {
  if (await removedAtOnce(path)) return;
  if (!isUnmounted) await refuseMounts(path);
  const removal = new TreeRemoval(path);
  await removal.run();
}

/** Removes an empty directory or a file at once; false for a directory with contents. */
async function removedAtOnce(path: string): Promise<boolean> {
  try {
    await calls.rmdir(path);
    return true;
  } catch (error) {
    const code = errnoOf(error) ?? "";
    if (code === "ENOENT") return true;
    if (code !== "ENOTDIR") return false;
  }
  try {
    await calls.unlink(path);
  } catch (error) {
    if (!["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) throw error;
  }
  return true;
}

async function refuseMounts(path: string): Promise<void> {
  const real = await calls.realpath(path);
  const [mount] = mountsBelow(currentMountTable(), real);
  if (mount !== undefined) throw busy(mount.target);
}

function busy(path: string): FileError {
  return new FileError("EBUSY", path, `EBUSY: something is mounted at '${path}'`);
}

class TreeRemoval {
  readonly #path: string;
  #rootDescriptor = -1;
  #rootMount = "";
  #firstError: FileError | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async run(): Promise<void> {
    const root = await openDirectory(this.#path);
    using _closing = new Closing(root);
    this.#rootDescriptor = root;
    this.#rootMount = mountOf(root);
    await this.#refuseMountedRoot();
    const place = { top: root, device: deviceOf(root), depth: 0, subvolumes: 0 };
    try {
      await this.#empty(root, place, () => calls.rmdir(this.#path));
    } catch (error) {
      throw this.#firstError ?? error;
    }
  }

  /** A mount on the root by now belongs to somebody, whatever the caller has checked. */
  async #refuseMountedRoot(): Promise<void> {
    const parent = await calls.open(dirname(this.#path), O_RDONLY | O_DIRECTORY);
    using _closing = new Closing(parent);
    if (mountOf(parent) !== this.#rootMount) throw busy(this.#path);
  }

  /**
   * Removes the contents of the directory, then the directory itself. Some file systems skip entries while others are
   * being removed, so it is read again as long as that removes some.
   */
  async #empty(directory: Descriptor, place: Place, removeIt: () => Promise<void>): Promise<void> {
    for (;;) {
      let removed = 0;
      for await (const entry of await entriesOf(directory)) {
        const name = Buffer.from(entry.name, "latin1");
        if (await this.#removeEntry(directory, { name, isDirectory: entry.isDirectory() }, place)) removed++;
      }
      try {
        return await removeIt();
      } catch (error) {
        if (!["ENOTEMPTY", "EEXIST"].includes(errnoOf(error) ?? "") || removed === 0) throw error;
      }
    }
  }

  /** False when the entry still exists. */
  async #removeEntry(
    directory: Descriptor,
    { name, isDirectory }: { readonly name: Buffer; readonly isDirectory: boolean },
    place: Place,
  ): Promise<boolean> {
    const path = childPath(directory, name);
    const enter = async (): Promise<void> => this.#removeDirectory(path, { ...place, depth: place.depth + 1 });
    try {
      await (isDirectory ? enterOrUnlink(path, enter) : unlinkOrEnter(path, enter));
      return true;
    } catch (error) {
      const code = errnoOf(error) ?? "UNKNOWN";
      if (code === "ENOENT") return true;
      const shown = `${this.#path}/${directory === this.#rootDescriptor ? "" : "…/"}${name.toString()}`;
      this.#firstError ??= new FileError(code, shown, `${code}: cannot remove '${shown}'`, { cause: error });
      return false;
    }
  }

  async #removeDirectory(path: Buffer, place: Place): Promise<void> {
    if (place.depth >= deepest) {
      await moveTo(place.top, path);
      return;
    }
    const directory = await openDirectory(path);
    using _closing = new Closing(directory);
    if (mountOf(directory) !== this.#rootMount) throw busy(this.#path);
    const device = deviceOf(directory);
    const subvolumes = place.subvolumes + 1;
    if (device === place.device) {
      await this.#empty(directory, place, () => calls.rmdir(path));
    } else if (subvolumes > deepestSubvolumes) {
      await moveTo(this.#rootDescriptor, path);
    } else {
      // What makes a subvolume needs no privilege, so a pod may have; rmdir(2) removes one that is empty.
      await this.#empty(directory, { top: directory, device, depth: 0, subvolumes }, () => calls.rmdir(path));
    }
  }
}

/** Moves a directory up, where it is found when the directories above it are read again. */
async function moveTo(top: Descriptor, path: Buffer): Promise<void> {
  await calls.rename(path, childPath(top, Buffer.from(`.removing-${randomBytes(12).toString("hex")}`)));
}

/** Removes an empty directory, calls `enter` for another one, and unlinks anything that is no longer a directory. */
async function enterOrUnlink(path: Buffer, enter: () => Promise<void>): Promise<void> {
  try {
    await calls.rmdir(path).catch(enter);
  } catch (error) {
    if (!["ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) throw error;
    await calls.unlink(path);
  }
}

/** Unlinks a file; calls `enter` for a directory. */
async function unlinkOrEnter(path: Buffer, enter: () => Promise<void>): Promise<void> {
  try {
    await calls.unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "EISDIR") throw error;
    await enter();
  }
}

function openDirectory(path: string | Buffer): Promise<Descriptor> {
  return calls.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

interface Entry {
  readonly name: string;
  isDirectory(): boolean;
}

/** Names are bytes: latin1 preserves each of them, including invalid UTF-8. */
async function entriesOf(directory: Descriptor): Promise<AsyncIterable<Entry> | Iterable<Entry>> {
  if (fstatSync(directory).size <= smallDirectoryBytes) return await calls.readdir(childPath(directory), "latin1");
  return await opendir(childPath(directory), { encoding: "latin1" });
}

/** Identifies the mount of an open directory. */
function mountOf(directory: Descriptor): string {
  // The kernel answers from memory, whatever file system the directory is on; a round trip to another thread would cost
  // ten times as much.
  return mountFrom(readFileSync(`/proc/self/fdinfo/${directory}`, "latin1"), deviceOf(directory));
}

/**
 * Identifies a mount by proc_pid_fdinfo(5). The device does not: bind mounts share it, and each subvolume of a btrfs
 * has its own in the same mount. It is the last resort where /proc is another one than Linux's. Pure.
 * @param device st_dev
 */
export function mountFrom(description: string, device: number): string {
  return /^mnt_id:\s*([0-9]+)$/m.exec(description)?.[1] ?? `device ${device}`;
}

function deviceOf(directory: Descriptor): number {
  return fstatSync(directory).dev;
}

/** A path through an open directory, wherever that has been moved. */
function childPath(descriptor: number, name: Buffer = Buffer.of()): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${descriptor}/`), name]);
}
