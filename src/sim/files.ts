import { basename, dirname, join } from "node:path/posix";
import type { Clock } from "../ports/clock.ts";
import { type DirectoryEntry, FileError, type FileInfo, type Files, type ReadOptions } from "../ports/files.ts";

interface Node {
  type: "file" | "directory" | "symlink";
  data: Uint8Array;
  /** Of a symbolic link. */
  target: string;
  mode: number;
  owner: { readonly uid: number; readonly gid: number };
  modified: number;
  readonly inode: number;
}

interface Watch {
  readonly directory: string;
  readonly inode: number;
  readonly onChange: () => void;
  readonly onError: (error: Error) => void;
  pending: Disposable | undefined;
}

/** Symbolic links followed on one path, as Linux's. */
const maxLinks = 40;

/**
 * A file system in memory that behaves: it survives what uses it, so that a restart of podwright can be simulated on
 * the same disk. One instance is one file system; the root directory exists.
 */
export class MemoryFiles implements Files {
  readonly #clock: Pick<Clock, "now" | "timer">;
  readonly #nodes = new Map<string, Node>();
  readonly #watches = new Set<Watch>();
  #lastInode = 1;

  constructor(clock: Pick<Clock, "now" | "timer">) {
    this.#clock = clock;
    this.#nodes.set("/", this.#newNode("directory", 0o755));
  }

  async read(path: string, maxBytes: number): Promise<Uint8Array> {
    const { data } = this.#file(path);
    if (data.length > maxBytes) throw failure("EFBIG", path, `longer than ${maxBytes} bytes`);
    return data.slice();
  }

  async readRange(path: string, offset: number, length: number, options: ReadOptions = {}): Promise<Uint8Array> {
    if (options.noFollow === true && (await this.stat(path))?.type === "symlink") {
      throw failure("ELOOP", path, "is a symbolic link");
    }
    return this.#file(path).data.slice(offset, offset + length);
  }

  async writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const real = this.#place(path);
    if (this.#nodes.get(real)?.type === "directory") throw failure("EISDIR", path, "is a directory");
    const node = this.#newNode("file", mode);
    node.data = toBytes(data);
    this.#put(real, node);
  }

  async write(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const node = this.#fileToWrite(path, mode);
    node.mode = mode;
    node.data = toBytes(data);
  }

  async append(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const node = this.#fileToWrite(path, mode);
    const added = toBytes(data);
    const joined = new Uint8Array(node.data.length + added.length);
    joined.set(node.data);
    joined.set(added, node.data.length);
    node.data = joined;
  }

  async makeDirectory(path: string, mode: number): Promise<void> {
    const existing = this.#lookUp(path);
    if (existing?.node.type === "directory") return;
    if (existing !== undefined) throw failure("EEXIST", path, "file exists");
    await this.makeDirectory(dirname(path), mode);
    this.#put(this.#place(path), this.#newNode("directory", mode));
  }

  async list(path: string): Promise<DirectoryEntry[]> {
    const found = this.#lookUp(path);
    if (found === undefined) return [];
    if (found.node.type !== "directory") throw failure("ENOTDIR", path, "not a directory");
    return this.#children(found.path).map(([child, node]) => ({ name: basename(child), type: node.type }));
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const parent = this.#lookUp(dirname(path));
    const node = parent && this.#nodes.get(path === "/" ? path : join(parent.path, basename(path)));
    if (node === undefined) return undefined;
    const { type, data, mode, modified, inode } = node;
    return { type, size: type === "symlink" ? node.target.length : data.length, mode, modified, inode, device: 1 };
  }

  async remove(path: string): Promise<void> {
    if (this.#lookUp(dirname(path)) === undefined) return;
    const real = this.#place(path);
    const node = this.#nodes.get(real);
    if (node?.type === "directory" && this.#children(real).length > 0) {
      throw failure("ENOTEMPTY", path, "directory not empty");
    }
    if (node !== undefined) this.#delete(real);
  }

  async removeTree(path: string): Promise<void> {
    if (this.#lookUp(dirname(path)) === undefined) return;
    const real = this.#place(path);
    const doomed = [...this.#nodes.keys()].filter((key) => key === real || key.startsWith(`${real}/`));
    for (const key of doomed.toReversed()) this.#delete(key);
  }

  async rename(from: string, to: string): Promise<void> {
    const [source, target] = [this.#place(from), this.#place(to)];
    const moved = [...this.#nodes].filter(([key]) => key === source || key.startsWith(`${source}/`));
    if (moved.length === 0) throw failure("ENOENT", from, "no such file or directory");
    if (this.#children(target).length > 0) throw failure("ENOTEMPTY", to, "directory not empty");
    for (const [key] of moved.toReversed()) this.#delete(key);
    for (const [key, node] of moved) this.#put(target + key.slice(source.length), node);
  }

  async symlink(target: string, path: string): Promise<void> {
    const real = this.#place(path);
    if (this.#nodes.has(real)) throw failure("EEXIST", path, "file exists");
    const node = this.#newNode("symlink", 0o777);
    node.target = target;
    this.#put(real, node);
  }

  async readLink(path: string): Promise<string> {
    const node = this.#nodes.get(this.#place(path));
    if (node === undefined) throw failure("ENOENT", path, "no such file or directory");
    if (node.type !== "symlink") throw failure("EINVAL", path, "is no symbolic link");
    return node.target;
  }

  async realPath(path: string): Promise<string> {
    return this.#existing(path).path;
  }

  async chmod(path: string, mode: number): Promise<void> {
    this.#existing(path).node.mode = mode;
  }

  async chown(path: string, uid: number, gid: number): Promise<void> {
    this.#existing(path).node.owner = { uid, gid };
  }

  /** Of what the path names, a final symbolic link not followed. */
  ownerOf(path: string): { readonly uid: number; readonly gid: number } | undefined {
    const parent = this.#lookUp(dirname(path));
    return parent && this.#nodes.get(join(parent.path, basename(path)))?.owner;
  }

  watch(directory: string, onChange: () => void, onError: (error: Error) => void): Disposable {
    const found = this.#lookUp(directory);
    if (found?.node.type !== "directory") {
      const error = failure("ENOENT", directory, "no such directory");
      return this.#clock.timer(`the end of watching ${directory}`, 0, () => onError(error));
    }
    const watch: Watch = { directory: found.path, inode: found.node.inode, onChange, onError, pending: undefined };
    this.#watches.add(watch);
    return { [Symbol.dispose]: () => this.#endWatch(watch) };
  }

  #endWatch(watch: Watch): void {
    this.#watches.delete(watch);
    watch.pending?.[Symbol.dispose]();
  }

  #newNode(type: Node["type"], mode: number): Node {
    const owner = { uid: 0, gid: 0 };
    const modified = this.#clock.now();
    return { type, data: new Uint8Array(), target: "", mode, owner, modified, inode: this.#lastInode++ };
  }

  #put(path: string, node: Node): void {
    this.#nodes.set(path, node);
    this.#changed(dirname(path));
  }

  #delete(path: string): void {
    this.#nodes.delete(path);
    for (const watch of [...this.#watches].filter((candidate) => candidate.directory === path)) {
      this.#endWatch(watch);
      const error = failure("ENOENT", path, "the directory was removed");
      this.#clock.timer(`the end of watching ${path}`, 0, () => watch.onError(error));
    }
    this.#changed(dirname(path));
  }

  /** Tells who watches the directory, once for everything that happens before they get to run. */
  #changed(directory: string): void {
    for (const watch of this.#watches) {
      if (watch.directory !== directory || watch.pending !== undefined) continue;
      watch.pending = this.#clock.timer(`a change of ${directory}`, 0, () => {
        watch.pending = undefined;
        watch.onChange();
      });
    }
  }

  #children(directory: string): [string, Node][] {
    return [...this.#nodes].filter(([path]) => path !== "/" && dirname(path) === directory);
  }

  #file(path: string): Node {
    const { node } = this.#existing(path);
    if (node.type === "directory") throw failure("EISDIR", path, "is a directory");
    return node;
  }

  #fileToWrite(path: string, mode: number): Node {
    const real = this.#place(path);
    const existing = this.#nodes.get(real);
    if (existing?.type === "directory") throw failure("EISDIR", path, "is a directory");
    if (existing?.type === "symlink") throw failure("ELOOP", path, "is a symbolic link");
    const node = existing ?? this.#newNode("file", mode);
    node.modified = this.#clock.now();
    this.#put(real, node);
    return node;
  }

  #existing(path: string): { path: string; node: Node } {
    const found = this.#lookUp(path);
    if (found === undefined) throw failure("ENOENT", path, "no such file or directory");
    return found;
  }

  /** The path with its parents' links followed; the last part need not exist. */
  #place(path: string): string {
    const parent = this.#existing(dirname(path));
    if (parent.node.type !== "directory") throw failure("ENOTDIR", path, "not a directory");
    return path === "/" ? path : join(parent.path, basename(path));
  }

  /** What a path leads to, with all links followed. */
  #lookUp(path: string, links = 0): { path: string; node: Node } | undefined {
    if (!path.startsWith("/")) throw failure("EINVAL", path, "is no absolute path");
    if (links > maxLinks) throw failure("ELOOP", path, "too many levels of symbolic links");
    let here = "/";
    const parts = path.split("/").filter((part) => part !== "");
    for (const [index, part] of parts.entries()) {
      here = join(here, part);
      const node = this.#nodes.get(here);
      if (node === undefined) return undefined;
      if (node.type === "symlink") {
        const target = node.target.startsWith("/") ? node.target : join(dirname(here), node.target);
        return this.#lookUp(join(target, ...parts.slice(index + 1)), links + 1);
      }
    }
    const node = this.#nodes.get(here);
    return node && { path: here, node };
  }
}

function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
}

function failure(code: string, path: string, problem: string): FileError {
  return new FileError(code, path, `${code}: ${problem}: '${path}'`);
}
