import { constants } from "node:fs";
import { chmod, mkdir, open, readlink, stat, type FileHandle } from "node:fs/promises";
import { FileError } from "../../ports/files.ts";
import type { OpenedPath, PathKind, VolumeFiles } from "../../ports/volume-files.ts";
import { errnoOf, onPath } from "../file-error.ts";
import { descriptorPath, O_PATH } from "./descriptor-path.ts";
import { giveToGroup } from "./group-gift.ts";
import { inStorage, usageOf } from "./remote-storage.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** Symbolic links followed for one path, as in Linux. */
const maxLinks = 40;

export const systemVolumeFiles: VolumeFiles = {
  kind: (path) => onPath(path, () => inStorage(path, () => kind(path))),
  groupOf: (path) => onPath(path, () => inStorage(path, async () => (await stat(path)).gid)),
  openBeneath: (root, relativePath) =>
    onPath(`${root}/${relativePath}`, () => inStorage(root, () => openBeneath(root, relativePath))),
  readBeneath: (root, relativePath, maxBytes) =>
    onPath(`${root}/${relativePath}`, () => inStorage(root, () => readBeneath(root, relativePath, maxBytes))),
  giveToGroup: (root, access, signal) => onPath(root, () => giveToGroup(root, access, signal)),
  usage: (path, signal) => onPath(path, () => usageOf(path, signal)),
};

async function kind(path: string): Promise<PathKind | undefined> {
  try {
    const info = await stat(path);
    if (info.isDirectory()) return "directory";
    if (info.isFile()) return "file";
    if (info.isSocket()) return "socket";
    if (info.isCharacterDevice()) return "characterDevice";
    return info.isBlockDevice() ? "blockDevice" : "other";
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

async function openBeneath(root: string, relativePath: string): Promise<OpenedPath> {
  const walk = await Walk.from(root, { makes: true });
  try {
    await walk.follow(relativePath.split("/"));
    return await walk.result();
  } catch (error) {
    await walk.close();
    throw error;
  }
}

async function readBeneath(root: string, relativePath: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const walk = await Walk.from(root, { makes: false });
  try {
    await walk.follow(relativePath.split("/"));
    await using opened = await walk.result();
    if (!opened.isFile) throw new FileError("EINVAL", relativePath, "EINVAL: not a regular file");
    await using file = await open(opened.mountSource, O_RDONLY);
    const content = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= maxBytes; length += read) {
      ({ bytesRead: read } = await file.read(content, length, content.length - length));
    }
    if (length > maxBytes) throw new FileError("EFBIG", relativePath, `EFBIG: more than ${maxBytes} bytes`);
    return new Uint8Array(content.subarray(0, length));
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  } finally {
    await walk.close();
  }
}

/**
 * A walk from a volume's top directory, one component at a time. It keeps every directory on its way open, so that `..`
 * in a link goes back the same way and never above the top, whatever is renamed meanwhile.
 */
class Walk {
  readonly #root: string;
  readonly #path: FileHandle[] = [];
  readonly #makes: boolean;
  #createMode = 0;
  #links = 0;

  private constructor(root: string, makes: boolean) {
    this.#root = root;
    this.#makes = makes;
  }

  /** `makes`: creates missing directories. */
  static async from(root: string, { makes }: { readonly makes: boolean }): Promise<Walk> {
    const walk = new Walk(root, makes);
    const handle = await open(root, O_PATH | O_DIRECTORY);
    walk.#path.push(handle);
    walk.#createMode = (await handle.stat()).mode & 0o7777;
    return walk;
  }

  async follow(components: readonly string[], inLink = false): Promise<void> {
    for (const component of components) {
      if (component === "" || component === ".") continue;
      if (component === "..") await this.#goBack();
      else await this.#enter(component, inLink);
    }
  }

  /** Keeps the final object open and closes the rest. */
  async result(): Promise<OpenedPath & { readonly isFile: boolean }> {
    const end = this.#here();
    const info = await end.stat();
    this.#path.pop();
    await this.close();
    return {
      mountSource: `/proc/${process.pid}/fd/${end.fd}`,
      isDirectory: info.isDirectory(),
      isFile: info.isFile(),
      device: info.dev,
      inode: info.ino,
      [Symbol.asyncDispose]: () => end.close(),
    };
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#path.splice(0).map((handle) => handle.close()));
  }

  #here(): FileHandle {
    const here = this.#path.at(-1);
    if (here === undefined) throw new Error("the walk has ended");
    return here;
  }

  async #goBack(): Promise<void> {
    if (this.#path.length === 1) throw this.#leadsOut();
    await this.#path.pop()?.close();
  }

  async #enter(name: string, inLink: boolean): Promise<void> {
    const path = childPath(this.#here(), name);
    let handle: FileHandle;
    try {
      handle = await open(path, O_PATH | O_NOFOLLOW);
    } catch (error) {
      // A dangling link stays: its target was not requested.
      if (errnoOf(error) !== "ENOENT" || inLink || !this.#makes) throw error;
      handle = await this.#create(path);
    }
    let isLink: boolean;
    try {
      isLink = (await handle.stat()).isSymbolicLink();
    } catch (error) {
      await handle.close();
      throw error;
    }
    if (!isLink) {
      this.#path.push(handle);
      return;
    }
    await handle.close();
    await this.#followLink(path);
  }

  async #create(path: string): Promise<FileHandle> {
    try {
      await mkdir(path, this.#createMode);
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
      return await open(path, O_PATH | O_NOFOLLOW);
    }
    const handle = await open(path, O_PATH | O_NOFOLLOW);
    // Undoes the umask. Through the descriptor: by name it could be another object by now.
    if ((await handle.stat()).isDirectory()) await chmod(descriptorPath(handle.fd), this.#createMode);
    return handle;
  }

  /** The link may have changed meanwhile: its text is walked with the same care. */
  async #followLink(path: string): Promise<void> {
    if (++this.#links > maxLinks) throw new FileError("ELOOP", path, `ELOOP: too many links in a volume`);
    const target = await readlink(path);
    if (!target.startsWith("/")) return await this.follow(target.split("/"), true);
    // An absolute link is a path of the node; only one into this volume can be followed.
    const [top] = this.#path;
    const real = top === undefined ? this.#root : await readlink(descriptorPath(top.fd));
    if (target !== real && !target.startsWith(`${real}/`)) throw this.#leadsOut();
    while (this.#path.length > 1) await this.#path.pop()?.close();
    await this.follow(target.slice(real.length).split("/"), true);
  }

  #leadsOut(): FileError {
    return new FileError("EXDEV", this.#root, `EXDEV: the path leads out of the volume '${this.#root}'`);
  }
}

function childPath(directory: FileHandle, name: string): string {
  return `${descriptorPath(directory.fd)}/${name}`;
}
