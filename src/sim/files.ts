import { type DirectoryEntry, FileError, type FileInfo, type Files } from "../ports/files.ts";

interface Node {
  type: "file" | "directory" | "symlink";
  data: Uint8Array;
  mode: number;
  modified: number;
  readonly inode: number;
}

interface Watcher {
  readonly directory: string;
  readonly onChange: () => void;
}

/** A file system in memory that behaves: for tests and for the simulator. Watchers are told in the same turn. */
export class MemoryFiles implements Files {
  readonly #nodes = new Map<string, Node>();
  readonly #watchers = new Set<Watcher>();
  readonly #now: () => number;
  #inode = 1;

  constructor(now: () => number = () => 0) {
    this.#now = now;
    this.#nodes.set("/", this.#node("directory", new Uint8Array(), 0o755));
  }

  /** Every path but directories, sorted: for tests that compare what is left. */
  paths(): string[] {
    return [...this.#nodes].filter(([, node]) => node.type !== "directory").map(([path]) => path).toSorted();
  }

  async read(path: string, maxBytes: number): Promise<Uint8Array> {
    const { data } = this.#file(path);
    if (data.length > maxBytes) throw new FileError("EFBIG", path, `${path} is longer than ${maxBytes} bytes`);
    return data.slice();
  }

  async readRange(path: string, offset: number, length: number): Promise<Uint8Array> {
    return this.#file(path).data.slice(offset, offset + length);
  }

  async writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    this.#requireParent(path);
    this.#nodes.set(path, this.#node("file", bytes(data), mode));
    this.#changed(path);
  }

  async write(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    this.#requireParent(path);
    const known = this.#nodes.get(this.#follow(path));
    if (known === undefined) this.#nodes.set(path, this.#node("file", bytes(data), mode));
    else Object.assign(known, { data: bytes(data), mode, modified: this.#now() });
    this.#changed(path);
  }

  async append(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const known = this.#nodes.get(this.#follow(path));
    if (known === undefined) return await this.write(path, data, mode);
    Object.assign(known, { data: Buffer.concat([known.data, bytes(data)]), modified: this.#now() });
    this.#changed(path);
  }

  async makeDirectory(path: string, mode: number): Promise<void> {
    const parts = path.split("/").filter((part) => part !== "");
    for (let length = 1; length <= parts.length; length++) {
      const part = `/${parts.slice(0, length).join("/")}`;
      const known = this.#nodes.get(this.#follow(part));
      if (known === undefined) {
        this.#nodes.set(part, this.#node("directory", new Uint8Array(), length === parts.length ? mode : 0o755));
        this.#changed(part);
      } else if (known.type !== "directory") {
        throw new FileError("ENOTDIR", path, `${part} is not a directory`);
      }
    }
  }

  async list(path: string): Promise<DirectoryEntry[]> {
    const directory = this.#nodes.get(this.#follow(path));
    if (directory === undefined) return [];
    if (directory.type !== "directory") throw new FileError("ENOTDIR", path, `${path} is not a directory`);
    return this.#children(this.#follow(path)).map(([name, node]) => ({ name, type: node.type }));
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const node = this.#nodes.get(path);
    if (node === undefined) return undefined;
    const { type, mode, modified, inode, data } = node;
    return { type, mode, modified, inode, size: data.length, device: 1 };
  }

  async remove(path: string): Promise<void> {
    if (this.#children(path).length > 0) throw new FileError("ENOTEMPTY", path, `${path} is not empty`);
    if (this.#nodes.delete(path)) this.#changed(path);
  }

  async removeTree(path: string): Promise<void> {
    for (const known of [...this.#nodes.keys()]) {
      if (known === path || known.startsWith(`${path}/`)) this.#nodes.delete(known);
    }
    this.#changed(path);
  }

  async rename(from: string, to: string): Promise<void> {
    if (!this.#nodes.has(from)) throw new FileError("ENOENT", from, `${from} does not exist`);
    this.#requireParent(to);
    for (const [known, node] of [...this.#nodes]) {
      if (known !== from && !known.startsWith(`${from}/`)) continue;
      this.#nodes.delete(known);
      this.#nodes.set(to + known.slice(from.length), node);
    }
    this.#changed(from);
    this.#changed(to);
  }

  async symlink(target: string, path: string): Promise<void> {
    if (this.#nodes.has(path)) throw new FileError("EEXIST", path, `${path} exists`);
    this.#requireParent(path);
    this.#nodes.set(path, this.#node("symlink", bytes(target), 0o777));
    this.#changed(path);
  }

  async readLink(path: string): Promise<string> {
    const node = this.#nodes.get(path);
    if (node?.type !== "symlink") throw new FileError(node === undefined ? "ENOENT" : "EINVAL", path, `${path} is no link`);
    return new TextDecoder().decode(node.data);
  }

  async realPath(path: string): Promise<string> {
    const real = this.#follow(path);
    if (!this.#nodes.has(real)) throw new FileError("ENOENT", path, `${path} does not exist`);
    return real;
  }

  async chmod(path: string, mode: number): Promise<void> {
    const node = this.#nodes.get(this.#follow(path));
    if (node === undefined) throw new FileError("ENOENT", path, `${path} does not exist`);
    node.mode = mode;
  }

  async chown(path: string, _uid: number, _gid: number): Promise<void> {
    if (!this.#nodes.has(path)) throw new FileError("ENOENT", path, `${path} does not exist`);
  }

  watch(directory: string, onChange: () => void, onError: (error: Error) => void): Disposable {
    const watcher: Watcher = { directory, onChange };
    if (this.#nodes.has(directory)) this.#watchers.add(watcher);
    else onError(new FileError("ENOENT", directory, `${directory} does not exist`));
    return { [Symbol.dispose]: () => void this.#watchers.delete(watcher) };
  }

  #node(type: Node["type"], data: Uint8Array, mode: number): Node {
    return { type, data, mode, modified: this.#now(), inode: this.#inode++ };
  }

  #file(path: string): Node {
    const node = this.#nodes.get(this.#follow(path));
    if (node === undefined) throw new FileError("ENOENT", path, `${path} does not exist`);
    if (node.type === "directory") throw new FileError("EISDIR", path, `${path} is a directory`);
    return node;
  }

  #follow(path: string, depth = 0): string {
    const node = this.#nodes.get(path);
    if (node?.type !== "symlink") return path;
    if (depth > 40) throw new FileError("ELOOP", path, `${path}: too many levels of symbolic links`);
    const target = new TextDecoder().decode(node.data);
    return this.#follow(target.startsWith("/") ? target : `${parentOf(path)}/${target}`, depth + 1);
  }

  #children(path: string): [string, Node][] {
    const prefix = path === "/" ? "/" : `${path}/`;
    return [...this.#nodes]
      .filter(([known]) => known.startsWith(prefix) && known !== prefix && !known.slice(prefix.length).includes("/"))
      .map(([known, node]) => [known.slice(prefix.length), node]);
  }

  #requireParent(path: string): void {
    const parent = this.#nodes.get(this.#follow(parentOf(path)));
    if (parent?.type !== "directory") throw new FileError("ENOENT", path, `${parentOf(path)} does not exist`);
  }

  #changed(path: string): void {
    for (const watcher of this.#watchers) if (watcher.directory === parentOf(path)) watcher.onChange();
  }
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function bytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
}
