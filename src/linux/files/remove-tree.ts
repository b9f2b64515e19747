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

/** Directories up to this size are read at once; a pod can make one whose names would fill the memory. */
const smallDirectoryBytes = 64 * 1024;

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
    try {
      await this.#empty(root, 0, () => calls.rmdir(this.#path));
    } catch (error) {
      throw this.#firstError ?? error;
    }
  }

  /** A mount on the root by now belongs to somebody, whatever the caller has checked. */
  async #refuseMountedRoot(): Promise<void> {
    const parent = await calls.open(dirname(this.#path), O_RDONLY | O_DIRECTORY);
    using _closing = new Closing(parent);
    if (mountIdOf(parent) !== this.#rootMount.split(" ")[0]) throw busy(this.#path);
  }

  /**
   * Removes the contents of the directory, then the directory itself. Some file systems skip entries while others are
   * being removed, so it is read again as long as that removes some.
   */
  async #empty(directory: Descriptor, depth: number, removeIt: () => Promise<void>): Promise<void> {
    for (;;) {
      let removed = 0;
      for await (const entry of await entriesOf(directory)) {
        const name = Buffer.from(entry.name, "latin1");
        if (await this.#removeEntry(directory, { name, isDirectory: entry.isDirectory() }, depth)) removed++;
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
    depth: number,
  ): Promise<boolean> {
    const path = childPath(directory, name);
    const enter = async (): Promise<void> => this.#removeDirectory(path, depth + 1);
    try {
      await (isDirectory ? enterOrUnlink(path, enter) : unlinkOrEnter(path, enter));
      return true;
    } catch (error) {
      const code = errnoOf(error) ?? "UNKNOWN";
      if (code === "ENOENT") return true;
      const shown = `${this.#path}/${depth > 0 ? "…/" : ""}${name.toString()}`;
      this.#firstError ??= new FileError(code, shown, `${code}: cannot remove '${shown}'`, { cause: error });
      return false;
    }
  }

  async #removeDirectory(path: Buffer, depth: number): Promise<void> {
    if (depth >= deepest) {
      const inRoot = Buffer.from(`.removing-${randomBytes(12).toString("hex")}`);
      await calls.rename(path, childPath(this.#rootDescriptor, inRoot));
      return;
    }
    const directory = await openDirectory(path);
    using _closing = new Closing(directory);
    if (mountOf(directory) !== this.#rootMount) throw busy(this.#path);
    await this.#empty(directory, depth, () => calls.rmdir(path));
  }
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

/** The mount and device of an open directory: bind mounts share the device, btrfs subvolumes the mount. */
function mountOf(directory: Descriptor): string {
  return `${mountIdOf(directory)} ${fstatSync(directory).dev}`;
}

function mountIdOf(directory: Descriptor): string | undefined {
  // The kernel answers from memory, whatever file system the directory is on; a round trip to another thread would cost
  // ten times as much.
  const description = readFileSync(`/proc/self/fdinfo/${directory}`, "latin1");
  return /^mnt_id:\s*([0-9]+)$/m.exec(description)?.[1];
}

/** A path through an open directory, wherever that has been moved. */
function childPath(descriptor: number, name: Buffer = Buffer.of()): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${descriptor}/`), name]);
}
