import { randomBytes } from "node:crypto";
import { constants, readFileSync } from "node:fs";
import { lstat, open, opendir, realpath, rename, rmdir, unlink, type FileHandle } from "node:fs/promises";
import { FileError } from "../../ports/files.ts";
import { errnoOf } from "../file-error.ts";
import { mountsBelow, readMountTable } from "./mountinfo.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/**
 * How many directories deep a tree is opened. What lies deeper is moved up to its root first: a pod can nest directories
 * deeper than any path can say and than there are file descriptors.
 */
const deepest = 32;

/**
 * Removes a tree that may be hostile: a pod filled it, and may still be changing it.
 *
 * Every directory is opened without following links and its entries are reached through that descriptor, so swapping a
 * directory for a link leads nowhere. A mount on or below `path` (also a bind mount of the same file system) rejects with
 * `EBUSY` before anything is removed; one that appears meanwhile is never entered. What can be removed is removed even
 * when some of it can't; then the first error is thrown.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return await unlink(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    throw error;
  }
  await refuseMounts(path);
  const removal = new TreeRemoval(path);
  await removal.run();
}

async function refuseMounts(path: string): Promise<void> {
  const real = await realpath(path);
  const [mount] = mountsBelow(await readMountTable(), real);
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
    await using root = await openDirectory(this.#path);
    this.#rootDescriptor = root.fd;
    this.#rootMount = await mountOf(root);
    try {
      await this.#empty(root, 0, () => rmdir(this.#path));
    } catch (error) {
      throw this.#firstError ?? error;
    }
  }

  /**
   * Removes what is in the directory, then the directory itself. Some file systems skip entries while others are removed:
   * as long as some go, it is looked at again.
   */
  async #empty(directory: FileHandle, depth: number, removeIt: () => Promise<void>): Promise<void> {
    for (;;) {
      let removed = 0;
      // Names are bytes; latin1 gives each of them back, while those that are no UTF-8 would come back as other ones.
      for await (const entry of await opendir(childPath(directory.fd), { encoding: "latin1" })) {
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

  /** False when the entry is still there. */
  async #removeEntry(
    directory: FileHandle,
    { name, isDirectory }: { readonly name: Buffer; readonly isDirectory: boolean },
    depth: number,
  ): Promise<boolean> {
    const path = childPath(directory.fd, name);
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
      await rename(path, childPath(this.#rootDescriptor, inRoot));
      return;
    }
    await using directory = await openDirectory(path);
    if ((await mountOf(directory)) !== this.#rootMount) throw busy(this.#path);
    await this.#empty(directory, depth, () => rmdir(path));
  }
}

/** Calls `enter`; unlinks what is no directory any more. */
async function enterOrUnlink(path: Buffer, enter: () => Promise<void>): Promise<void> {
  try {
    await enter();
  } catch (error) {
    if (!["ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) throw error;
    await unlink(path);
  }
}

/** Unlinks what is no directory; for a directory calls `enter`. */
async function unlinkOrEnter(path: Buffer, enter: () => Promise<void>): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "EISDIR") throw error;
    await enter();
  }
}

function openDirectory(path: string | Buffer): Promise<FileHandle> {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/** The mount and the device that an open file is on: bind mounts share the device, btrfs subvolumes the mount. */
async function mountOf(file: FileHandle): Promise<string> {
  // The kernel answers at once, whatever the file is on: waiting for it as for a disk would cost ten times as much.
  const description = readFileSync(`/proc/self/fdinfo/${file.fd}`, "latin1");
  const mountId = /^mnt_id:\s*([0-9]+)$/m.exec(description)?.[1];
  return `${mountId} ${(await file.stat()).dev}`;
}

/** The path that leads through an open directory, wherever that is by now. */
function childPath(descriptor: number, name: Buffer = Buffer.of()): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${descriptor}/`), name]);
}
