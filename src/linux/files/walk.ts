import { constants } from "node:fs";
import { chmod, mkdir, open, readlink, type FileHandle } from "node:fs/promises";
import { FileError } from "../../ports/files.ts";
import type { OpenedPath } from "../../ports/volume-files.ts";
import { errnoOf } from "../file-error.ts";
import { descriptorPath, O_PATH } from "./descriptor-path.ts";

const { O_DIRECTORY, O_NOFOLLOW } = constants;

/** Symbolic links followed for one path, as in Linux. */
const maxLinks = 40;

/**
 * A walk from a volume's top directory, or another one that a pod may write to, one component at a time. It keeps every
 * directory on its way open, so that `..` in a link goes back the same way and never above the top, whatever is renamed
 * meanwhile.
 */
export class Walk {
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
      handle = await openItself(path);
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
      return await openItself(path);
    }
    const handle = await openItself(path);
    // Undoes the umask. Through the descriptor: by name it could be another object by now.
    if ((await handle.stat()).isDirectory()) await chmod(descriptorPath(handle.fd), this.#createMode);
    return handle;
  }

  /** The link may have changed meanwhile: its text is walked with the same care. */
  async #followLink(path: string): Promise<void> {
    if (++this.#links > maxLinks) throw new FileError("ELOOP", path, `ELOOP: too many links in a volume`);
    const target = await readlink(path);
    if (!target.startsWith("/")) return await this.follow(target.split("/"), true);
    // An absolute link is a path of the node; only one into this directory, by its real name or its own, can be followed.
    const [top] = this.#path;
    const names = [this.#root, ...(top === undefined ? [] : [await readlink(descriptorPath(top.fd))])];
    const name = names.find((each) => target === each || target.startsWith(`${each}/`));
    if (name === undefined) throw this.#leadsOut();
    while (this.#path.length > 1) await this.#path.pop()?.close();
    await this.follow(target.slice(name.length).split("/"), true);
  }

  #leadsOut(): FileError {
    return new FileError("EXDEV", this.#root, `EXDEV: the path leads out of the volume '${this.#root}'`);
  }
}

/** Opens what is there, also a link. Where something is mounted on first access, that is mounted and opened. */
async function openItself(path: string): Promise<FileHandle> {
  try {
    // O_PATH alone mounts nothing, and opens the directory below (openat(2)); NFSv4 does so for each export in another.
    return await open(path, O_PATH | O_NOFOLLOW | O_DIRECTORY);
  } catch (error) {
    if (!["ENOTDIR", "ELOOP"].includes(errnoOf(error) ?? "")) throw error;
    return await open(path, O_PATH | O_NOFOLLOW);
  }
}

function childPath(directory: FileHandle, name: string): string {
  return `${descriptorPath(directory.fd)}/${name}`;
}
