import { FileError } from "../ports/files.ts";
import type { DirectoryEntry, FileInfo, Files } from "../ports/files.ts";
import type { Locks } from "../ports/locks.ts";
import type { MountPoint, Mounts } from "../ports/mounts.ts";
import type { CommandResult, ProcessInfo, Processes } from "../ports/processes.ts";

interface Node {
  readonly data: Uint8Array;
  readonly mode: number;
  readonly inode: number;
}

/** A file system in memory, as far as this room uses it. For tests. */
export class FakeFiles implements Files {
  readonly #nodes = new Map<string, Node>();
  readonly #directories = new Set<string>(["/"]);
  readonly #links = new Map<string, string>();
  #inodes = 0;

  /** Puts a file there with its parents; `inode` makes it the same file as another one. */
  put(path: string, data: string | Uint8Array = "", { mode = 0o644, inode = ++this.#inodes } = {}): this {
    this.#addDirectories(parentOf(path));
    this.#nodes.set(path, { data: Buffer.from(data), mode, inode });
    return this;
  }

  /** Puts a symbolic link there. */
  link(path: string, target: string): this {
    this.#links.set(path, target);
    return this;
  }

  text(path: string): string | undefined {
    const node = this.#nodes.get(path);
    return node && Buffer.from(node.data).toString("utf8");
  }

  async read(path: string, maxBytes: number): Promise<Uint8Array> {
    return this.readRange(path, 0, maxBytes);
  }

  async readRange(path: string, offset: number, length: number): Promise<Uint8Array> {
    const node = this.#nodes.get(this.#resolve(path));
    if (node === undefined) throw new FileError("ENOENT", path, `${path}: no such file or directory`);
    return node.data.subarray(offset, offset + length);
  }

  async openWithin(directory: string): Promise<never> {
    throw new FileError("ENOSYS", directory, `${directory}: nothing here is opened`);
  }

  async writeAtomic(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    this.put(path, data, { mode });
  }

  write = this.writeAtomic.bind(this);

  async append(path: string, data: string | Uint8Array, mode: number): Promise<void> {
    this.put(path, Buffer.concat([this.#nodes.get(path)?.data ?? new Uint8Array(), Buffer.from(data)]), { mode });
  }

  async makeDirectory(path: string): Promise<void> {
    this.#addDirectories(path);
  }

  async list(path: string): Promise<DirectoryEntry[]> {
    const children = (paths: Iterable<string>): string[] =>
      [...paths].filter((child) => child !== "/" && parentOf(child) === path);
    return [
      ...children(this.#nodes.keys()).map((child) => ({ name: baseOf(child), type: "file" as const })),
      ...children(this.#directories).map((child) => ({ name: baseOf(child), type: "directory" as const })),
    ];
  }

  async stat(path: string): Promise<FileInfo | undefined> {
    const common = { modified: 0, device: 1 };
    if (this.#links.has(path)) return { ...common, type: "symlink", size: 0, mode: 0o777, inode: 0 };
    const real = this.#resolve(path);
    const node = this.#nodes.get(real);
    if (node !== undefined) {
      return { ...common, type: "file", size: node.data.length, mode: node.mode, inode: node.inode };
    }
    return this.#directories.has(real) ? { ...common, type: "directory", size: 0, mode: 0o755, inode: 0 } : undefined;
  }

  async remove(path: string): Promise<void> {
    this.#nodes.delete(path);
    this.#directories.delete(path);
  }

  async removeTree(path: string): Promise<void> {
    for (const child of [...this.#nodes.keys(), ...this.#directories]) {
      if (child === path || child.startsWith(`${path}/`)) await this.remove(child);
    }
  }

  async rename(from: string, to: string): Promise<void> {
    const node = this.#nodes.get(from);
    if (node === undefined) throw new FileError("ENOENT", from, `${from}: no such file or directory`);
    this.#nodes.delete(from);
    this.#nodes.set(to, node);
  }

  async symlink(target: string, path: string): Promise<void> {
    this.link(path, target);
  }

  async readLink(path: string): Promise<string> {
    return this.#links.get(path) ?? "";
  }

  async realPath(path: string): Promise<string> {
    const real = this.#resolve(path);
    if (this.#nodes.has(real) || this.#directories.has(real)) return real;
    throw new FileError("ENOENT", path, `${path}: no such file or directory`);
  }

  async chmod(): Promise<void> {}

  async chown(): Promise<void> {}

  watch(): Disposable {
    return { [Symbol.dispose]: () => {} };
  }

  watchEntries(): Disposable {
    return this.watch();
  }

  #resolve(path: string): string {
    for (const [link, target] of this.#links) {
      if (path === link || path.startsWith(`${link}/`)) return this.#resolve(target + path.slice(link.length));
    }
    return path;
  }

  #addDirectories(path: string): void {
    for (let directory = path; !this.#directories.has(directory); directory = parentOf(directory)) {
      this.#directories.add(directory);
    }
  }
}

/** Locks of this process alone; `foreign` ones are held by another process. */
export class FakeLocks implements Locks {
  readonly held = new Set<string>();
  readonly foreign = new Map<string, number>();

  async tryOwnLock(path: string): Promise<Disposable | undefined> {
    return await this.tryLock(path);
  }

  async tryLock(path: string): Promise<Disposable | undefined> {
    if (this.held.has(path) || this.foreign.size > 0) return undefined;
    this.held.add(path);
    return { [Symbol.dispose]: () => void this.held.delete(path) };
  }

  async holder(): Promise<number | undefined> {
    return this.foreign.values().next().value;
  }
}

/** A fixed list of processes, and commands that answer from a script. */
export class FakeProcesses implements Processes {
  readonly ownPid = 1000;
  readonly #processes: readonly ProcessInfo[];
  readonly #answer: (command: string) => Partial<CommandResult>;
  readonly commands: string[] = [];

  constructor(
    processes: readonly ProcessInfo[] = [],
    answer: (command: string) => Partial<CommandResult> = () => ({}),
  ) {
    this.#processes = processes;
    this.#answer = answer;
  }

  async run(program: string, arguments_: readonly string[]): Promise<CommandResult> {
    const command = [program, ...arguments_].join(" ");
    this.commands.push(command);
    return { exitCode: 0, signal: undefined, stdout: "", stderr: "", ...this.#answer(command) };
  }

  async list(): Promise<ProcessInfo[]> {
    return [...this.#processes];
  }

  /** Process IDs of another container. */
  readonly elsewhere = new Set<number>();

  sharesRoot(pid: number): boolean {
    return !this.elsewhere.has(pid);
  }

  isAlive(pid: number): boolean {
    return this.#processes.some((process) => process.pid === pid);
  }

  kill(): boolean {
    return false;
  }
}

/** A list of mounts that grows and shrinks; `refuse` makes mounting fail. */
export class FakeMounts implements Mounts {
  mounts: MountPoint[];
  refuse: string | undefined;

  constructor(...mounts: readonly MountPoint[]) {
    this.mounts = [...mounts];
  }

  async list(): Promise<MountPoint[]> {
    return [...this.mounts];
  }

  async below(path: string): Promise<MountPoint[]> {
    return this.mounts.filter(({ target }) => target === path || target.startsWith(`${path}/`));
  }

  async mount(mount: MountPoint): Promise<void> {
    if (this.refuse !== undefined) throw new Error(this.refuse);
    this.mounts.push(mount);
  }

  async unmount(target: string): Promise<void> {
    this.mounts = this.mounts.filter((mount) => mount.target !== target);
  }
}

/** A process by its command line. */
export function processOf(pid: number, commandLine: string): ProcessInfo {
  const words = commandLine.split(" ");
  return { pid, name: baseOf(words[0] ?? "").slice(0, 15), arguments: words };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
