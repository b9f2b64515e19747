import { invariant } from "../base/invariant.ts";
import { unfinishedName } from "../base/unfinished-files.ts";
import type { Clock } from "../ports/clock.ts";
import {
  type DirectoryEntry,
  FileError,
  type FileInfo,
  type Files,
  type OpenedObject,
  type ReadOptions,
  type RemoveTreeOptions,
} from "../ports/files.ts";

interface Node {
  readonly type: "file" | "directory" | "symlink" | "other";
  data: Uint8Array;
  /** Of a symbolic link. */
  readonly target: string;
  mode: number;
  owner: { readonly uid: number; readonly gid: number };
  modified: number;
  readonly inode: number;
  /** Of a directory, by name. */
  readonly children: Map<string, Node>;
}

/** A name in an existing directory; `node` is undefined while the name is free. */
interface Place {
  readonly parent: Node;
  readonly name: string;
  readonly node: Node | undefined;
  /** Of the real path. */
  readonly parts: readonly string[];
}

interface Watch {
  readonly path: string;
  readonly onChange: (removed: ReadonlySet<string>) => void;
  readonly onError: (error: Error) => void;
  pending: Disposable | undefined;
  /** Names removed since the last notification. */
  removed: Set<string>;
}

/** Symbolic links followed for one path, as in Linux. */
const maxLinks = 40;
const empty = new Uint8Array();

/**
 * An in-memory file system. It outlives its users, so that podwright can be restarted on the same disk. One instance is
 * one file system; the root directory exists.
 */
export class MemoryFiles implements Files {
  readonly #clock: Pick<Clock, "now" | "timer">;
  readonly #root: Node;
  /** Cache of split paths. */
  readonly #parts = new Map<string, readonly string[]>();
  readonly #watches = new Map<Node, Set<Watch>>();
  /** A mount at or below a path; undefined: none. */
  #mountBelow: (path: string) => string | undefined = () => undefined;
  #lastInode = 1;

  constructor(clock: Pick<Clock, "now" | "timer">) {
    this.#clock = clock;
    this.#root = this.#newNode("directory", 0o755);
  }

  async read(path: string, maxBytes: number): Promise<Uint8Array> {
    const { data } = this.#file(path);
    if (data.length > maxBytes) throw failure("EFBIG", path, `longer than ${maxBytes} bytes`);
    return data.slice();
  }

  async readRange(path: string, offset: number, length: number, options: ReadOptions = {}): Promise<Uint8Array> {
    if (options.noFollow === true && this.#find(path, false)?.node?.type === "symlink") {
      throw failure("ELOOP", path, "is a symbolic link");
    }
    return this.#file(path).data.slice(offset, offset + length);
  }

  async openWithin(directory: string, relativePath: string): Promise<OpenedObject> {
    const top = this.#existing(directory).parts;
    const { node, parts } = this.#existing(`${directory}/${relativePath}`);
    const isWithin = top.every((part, index) => part === parts[index]);
    if (!isWithin) throw failure("EXDEV", directory, "the path leads out");
    return {
      type: node.type,
      size: node.data.length,
      read: async (offset, length) => node.data.slice(offset, offset + length),
      list: async () => [...node.children].map(([name, { type }]) => ({ name, type })),
      [Symbol.asyncDispose]: async () => {},
    };
  }

  async writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    const place = this.#place(path);
    if (place.node?.type === "directory") throw failure("EISDIR", path, "is a directory");
    const node = this.#newNode("file", mode);
    node.data = toBytes(data);
    this.#put(place, node);
  }

  /** As a kill in the midst of {@link writeAtomic}: the temporary file is there. */
  async leaveUnfinished(path: string): Promise<void> {
    const name = unfinishedName(this.#lastInode.toString(16));
    const place = this.#find(`${directoryOf(path)}/${name}`, false);
    if (place !== undefined) this.#put(place, this.#newNode("file", 0o600));
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
    this.#makeDirectory(path, mode);
  }

  /** Synchronously with its parents, so that concurrent calls find them. */
  #makeDirectory(path: string, mode: number): void {
    const existing = this.#find(path, true)?.node;
    if (existing?.type === "directory") return;
    if (existing !== undefined) throw failure("EEXIST", path, "file exists");
    const parent = directoryOf(path);
    if (this.#find(parent, true)?.node === undefined) this.#makeDirectory(parent, mode);
    this.#put(this.#place(path), this.#newNode("directory", mode));
  }

  async list(path: string): Promise<DirectoryEntry[]> {
    const node = this.#find(path, true)?.node;
    if (node === undefined) return [];
    if (node.type !== "directory") throw failure("ENOTDIR", path, "not a directory");
    return [...node.children].map(([name, { type }]) => ({ name, type }));
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const node = this.#find(path, false)?.node;
    if (node === undefined) return undefined;
    const { type, data, mode, modified, inode } = node;
    return { type, size: type === "symlink" ? node.target.length : data.length, mode, modified, inode, device: 1 };
  }

  async remove(path: string): Promise<void> {
    const place = this.#find(path, false);
    if (place?.node === undefined) return;
    if (this.#mountBelow(path) !== undefined) throw failure("EBUSY", path, "is mounted");
    if (place.node.children.size > 0) throw failure("ENOTEMPTY", path, "directory not empty");
    this.#delete(place, place.node);
  }

  async removeTree(path: string, { isUnmounted = false }: RemoveTreeOptions = {}): Promise<void> {
    const mounted = this.#mountBelow(path);
    // Removal would cross it: data behind a mount belongs to others.
    invariant("nothing is removed below a mount", mounted === undefined || !isUnmounted, () => `${path}: ${mounted}`);
    if (mounted !== undefined) throw failure("EBUSY", path, `${mounted} is mounted`);
    const place = this.#find(path, false);
    if (place?.node !== undefined) this.#delete(place, place.node);
  }

  async rename(from: string, to: string): Promise<void> {
    const [source, target] = [this.#place(from), this.#place(to)];
    const moved = source.node;
    if (moved === undefined) throw failure("ENOENT", from, "no such file or directory");
    if ((target.node?.children.size ?? 0) > 0) throw failure("ENOTEMPTY", to, "directory not empty");
    source.parent.children.delete(source.name);
    this.#changed(source.parent, source.name);
    this.#put(target, moved);
  }

  async symlink(target: string, path: string): Promise<void> {
    const place = this.#place(path);
    if (place.node !== undefined) throw failure("EEXIST", path, "file exists");
    this.#put(place, this.#newNode("symlink", 0o777, target));
  }

  async readLink(path: string): Promise<string> {
    const { node } = this.#place(path);
    if (node === undefined) throw failure("ENOENT", path, "no such file or directory");
    if (node.type !== "symlink") throw failure("EINVAL", path, "is no symbolic link");
    return node.target;
  }

  async realPath(path: string): Promise<string> {
    return join(this.#existing(path).parts);
  }

  async chmod(path: string, mode: number): Promise<void> {
    this.#existing(path).node.mode = mode;
  }

  async chown(path: string, uid: number, gid: number): Promise<void> {
    this.#existing(path).node.owner = { uid, gid };
  }

  /** Creates a socket's file and its directory, replacing an existing file. */
  bind(path: string): void {
    this.#makeDirectory(directoryOf(path), 0o755);
    const place = this.#place(path);
    if (place.node !== undefined) this.#delete(place, place.node);
    this.#put(place, this.#newNode("other", 0o755));
  }

  /** From now on trees with mounts are not removed. */
  knowMounts(mountBelow: (path: string) => string | undefined): void {
    this.#mountBelow = mountBelow;
  }

  /** A file's content; undefined without it. */
  textOf(path: string): string | undefined {
    const data = this.#find(path, true)?.node?.data;
    return data && new TextDecoder().decode(data);
  }

  /** Names in a directory; none without it. */
  namesIn(directory: string): string[] {
    return [...(this.#find(directory, true)?.node?.children.keys() ?? [])];
  }

  /** Does not follow a final symbolic link. */
  ownerOf(path: string): { readonly uid: number; readonly gid: number } | undefined {
    return this.#find(path, false)?.node?.owner;
  }

  watch(directory: string, onChange: () => void, onError: (error: Error) => void): Disposable {
    return this.watchEntries(directory, onChange, onError);
  }

  watchEntries(
    directory: string,
    onChange: (removed: ReadonlySet<string>) => void,
    onError: (error: Error) => void,
  ): Disposable {
    const found = this.#find(directory, true);
    const node = found?.node;
    if (node?.type !== "directory") {
      const error = failure("ENOENT", directory, "no such directory");
      return this.#clock.timer(`the end of watching ${directory}`, 0, () => onError(error));
    }
    const watch: Watch = { path: join(found?.parts ?? []), onChange, onError, pending: undefined, removed: new Set() };
    this.#watches.set(node, (this.#watches.get(node) ?? new Set()).add(watch));
    return {
      [Symbol.dispose]: () => {
        this.#watches.get(node)?.delete(watch);
        watch.pending?.[Symbol.dispose]();
      },
    };
  }

  #newNode(type: Node["type"], mode: number, target = ""): Node {
    const owner = { uid: 0, gid: 0 };
    const modified = this.#clock.now();
    return { type, data: empty, target, mode, owner, modified, inode: this.#lastInode++, children: new Map() };
  }

  #put({ parent, name }: Place, node: Node): void {
    // At the end, like a new entry: a replaced one loses its position.
    parent.children.delete(name);
    parent.children.set(name, node);
    this.#changed(parent);
  }

  #delete({ parent, name }: Pick<Place, "parent" | "name">, node: Node): void {
    for (const [childName, child] of node.children) {
      this.#delete({ parent: node, name: childName }, child);
    }
    parent.children.delete(name);
    for (const watch of this.#watches.get(node) ?? []) {
      watch.pending?.[Symbol.dispose]();
      const error = failure("ENOENT", watch.path, "the directory was removed");
      this.#clock.timer(`the end of watching ${watch.path}`, 0, () => watch.onError(error));
    }
    this.#watches.delete(node);
    this.#changed(parent, name);
  }

  /**
   * Notifies watchers of the directory, once for all changes before they run.
   * @param removed a name that was removed
   */
  #changed(directory: Node, removed?: string): void {
    if (this.#watches.size === 0) return;
    for (const watch of this.#watches.get(directory) ?? []) {
      if (removed !== undefined) watch.removed.add(removed);
      watch.pending ??= this.#clock.timer(`a change of ${watch.path}`, 0, () => {
        watch.pending = undefined;
        const names = watch.removed;
        watch.removed = new Set();
        watch.onChange(names);
      });
    }
  }

  #file(path: string): Node {
    const { node } = this.#existing(path);
    if (node.type === "directory") throw failure("EISDIR", path, "is a directory");
    return node;
  }

  #fileToWrite(path: string, mode: number): Node {
    const place = this.#place(path);
    const existing = place.node;
    if (existing?.type === "directory") throw failure("EISDIR", path, "is a directory");
    if (existing?.type === "symlink") throw failure("ELOOP", path, "is a symbolic link");
    const node = existing ?? this.#newNode("file", mode);
    node.modified = this.#clock.now();
    if (existing === undefined) this.#put(place, node);
    else this.#changed(place.parent);
    return node;
  }

  #existing(path: string): { readonly parts: readonly string[]; readonly node: Node } {
    const found = this.#find(path, true);
    if (found?.node === undefined) throw failure("ENOENT", path, "no such file or directory");
    return { parts: found.parts, node: found.node };
  }

  /** Resolves the path's parents; the last component need not exist. */
  #place(path: string): Place {
    const found = this.#find(path, false);
    if (found !== undefined) return found;
    const parent = this.#existing(directoryOf(path));
    throw parent.node.type === "directory"
      ? failure("ENOENT", path, "no such file or directory")
      : failure("ENOTDIR", path, "not a directory");
  }

  /** Resolves a path with its links (the final one only on request); undefined when its directory is missing. */
  #find(path: string, follow: boolean, links = 0): Place | undefined {
    if (!path.startsWith("/")) throw failure("EINVAL", path, "is no absolute path");
    if (links > maxLinks) throw failure("ELOOP", path, "too many levels of symbolic links");
    const parts = this.#partsOf(path);
    let place = { parent: this.#root, name: "", node: this.#root as Node | undefined };
    for (let index = 0; index < parts.length; index++) {
      const name = parts[index] ?? "";
      const parent = place.node;
      if (parent?.type !== "directory") return undefined;
      if (name === "..") {
        const above = parts.slice(0, Math.max(0, index - 1));
        return this.#find(join([...above, ...parts.slice(index + 1)]), follow, links);
      }
      const node = parent.children.get(name);
      if (node?.type === "symlink" && (follow || index < parts.length - 1)) {
        const base = node.target.startsWith("/") ? [] : parts.slice(0, index);
        return this.#find(join([...base, node.target, ...parts.slice(index + 1)]), follow, links + 1);
      }
      place = { parent, name, node };
    }
    return { ...place, parts };
  }

  #partsOf(path: string): readonly string[] {
    let parts = this.#parts.get(path);
    if (parts === undefined) {
      parts = path.split("/").filter((part) => part !== "" && part !== ".");
      this.#parts.set(path, parts);
    }
    return parts;
  }
}

function join(parts: readonly string[]): string {
  return `/${parts.join("/")}`;
}

function directoryOf(path: string): string {
  return path.slice(0, Math.max(1, path.replace(/\/+$/, "").lastIndexOf("/")));
}

function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
}

function failure(code: string, path: string, problem: string): FileError {
  return new FileError(code, path, `${code}: ${problem}: '${path}'`);
}
