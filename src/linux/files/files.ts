import { randomBytes } from "node:crypto";
import { closeSync, constants, fstatSync, readFileSync } from "node:fs";
import { chown } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unfinishedName } from "../../base/unfinished-files.ts";
import { TransientMap } from "../../base/transient-map.ts";
import { FileError, type DirectoryEntry, type FileInfo, type Files, type ReadOptions } from "../../ports/files.ts";
import { errnoOf, onPath } from "../file-error.ts";
import { Closing, type Descriptor, type FileCalls, threadCalls } from "./calls.ts";
import { typeOf } from "./file-type.ts";
import { memoryCalls } from "./memory-calls.ts";
import { openWithin } from "./open-within.ts";
import { removeTree } from "./remove-tree.ts";
import { watchDirectory, watchEntries } from "./watch.ts";

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_TRUNC, O_WRONLY } = constants;

/** The umask, read at the first use: it never changes here, and most commands create no files. */
let knownUmask: number | undefined;

/** From proc_pid_status(5). Kernels that do not report it get the strictest one. */
function umask(): number {
  knownUmask ??= Number.parseInt(
    /^Umask:\s*([0-7]+)$/m.exec(readFileSync("/proc/self/status", "latin1"))?.[1] ?? "777",
    8,
  );
  return knownUmask;
}

/** Read size for files that do not report their size (/proc, /sys). */
const readChunkBytes = 16 * 1024;
const pageBytes = 4096;

/**
 * Reading and writing accept regular files only and never block on a pipe, because pods and administrators may put
 * anything anywhere. Reading follows symbolic links. Writing rejects a final one (`ELOOP`), because it could point out
 * of the intended directory.
 */
function filesBy(calls: FileCalls): Files {
  return {
    read: (path, maxBytes) => onPath(path, () => read(calls, path, maxBytes)),
    readRange: (path, offset, length, options) => onPath(path, () => readRange(calls, path, offset, length, options)),
    writeAtomic: (path, data, mode) => onPath(path, () => writeAtomic(calls, path, data, mode)),
    write: (path, data, mode) => onPath(path, () => writeInPlace(calls, path, data, mode, O_TRUNC)),
    append: (path, data, mode) => onPath(path, () => writeInPlace(calls, path, data, mode, O_APPEND)),
    makeDirectory: (path, mode) => onPath(path, () => makeDirectory(calls, path, mode)),
    openWithin: (path, relativePath) => onPath(`${path}/${relativePath}`, () => openWithin(path, relativePath)),
    list: (path) => onPath(path, () => list(calls, path)),
    stat: (path) => onPath(path, () => fileInfo(calls, path)),
    remove: (path) => onPath(path, () => remove(calls, path)),
    removeTree: (path, options) => onPath(path, () => removeTree(path, options)),
    rename: (from, to) => onPath(from, () => calls.rename(from, to)),
    symlink: (target, path) => onPath(path, () => calls.symlink(target, path)),
    readLink: (path) => onPath(path, () => calls.readLink(path)),
    realPath: (path) => onPath(path, () => calls.realpath(path)),
    chmod: (path, mode) => onPath(path, () => calls.chmod(path, mode)),
    chown: (path, uid, gid) => onPath(path, () => chown(path, uid, gid)),
    watch: watchDirectory,
    watchEntries,
  };
}

/** The machine's file system. */
export const systemFiles: Files = filesBy(threadCalls);

/** The same, for directories that the kernel keeps in memory: it answers at once, and no other thread is asked. */
export const memoryFiles: Files = filesBy(memoryCalls);

/** An existing regular file for reading. Its file system may be slow, so its close is not awaited. */
class OpenedFile implements Disposable {
  readonly descriptor: Descriptor;
  readonly size: number;
  readonly #calls: FileCalls;

  private constructor(calls: FileCalls, descriptor: Descriptor, size: number) {
    this.#calls = calls;
    this.descriptor = descriptor;
    this.size = size;
  }

  static async open(calls: FileCalls, path: string, options: ReadOptions = {}): Promise<OpenedFile> {
    const descriptor = await calls.open(path, O_RDONLY | O_NONBLOCK | (options.noFollow === true ? O_NOFOLLOW : 0));
    try {
      const info = await calls.fstat(descriptor);
      requireRegular(info, path);
      return new OpenedFile(calls, descriptor, info.size);
    } catch (error) {
      await calls.close(descriptor);
      throw error;
    }
  }

  [Symbol.dispose](): void {
    void this.#calls.close(this.descriptor).catch(() => {});
  }
}

function requireRegular(info: { isDirectory(): boolean; isFile(): boolean }, path: string): void {
  if (info.isDirectory()) throw new FileError("EISDIR", path, `EISDIR: is a directory: '${path}'`);
  if (!info.isFile()) throw new FileError("EINVAL", path, `EINVAL: not a regular file: '${path}'`);
}

async function read(calls: FileCalls, path: string, maxBytes: number): Promise<Uint8Array> {
  using file = await OpenedFile.open(calls, path);
  const { descriptor, size } = file;
  const tooLong = (): FileError => new FileError("EFBIG", path, `EFBIG: longer than ${maxBytes} bytes: '${path}'`);
  if (size > maxBytes) throw tooLong();
  // The size is only a hint: files of /proc and /sys report 0 or a whole page, and the file may grow meanwhile.
  const isWhole = (): boolean => length === size && size % pageBytes !== 0;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const chunk = new Uint8Array(Math.max(Math.min(size + 1 - length, maxBytes + 1 - length), readChunkBytes));
    const bytesRead = await calls.read(descriptor, chunk, 0, null);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    length += bytesRead;
    if (length > maxBytes) throw tooLong();
    if (isWhole()) break;
  }
  const [first] = chunks;
  return chunks.length === 1 && first !== undefined ? first : new Uint8Array(Buffer.concat(chunks));
}

async function readRange(
  calls: FileCalls,
  path: string,
  offset: number,
  length: number,
  options: ReadOptions | undefined,
): Promise<Uint8Array> {
  using file = await OpenedFile.open(calls, path, options);
  const { into } = options ?? {};
  const data = into === undefined || into.length < length ? new Uint8Array(length) : into;
  const wanted = data.subarray(0, length);
  let filled = 0;
  while (filled < length) {
    const bytesRead = await calls.read(file.descriptor, wanted, filled, offset + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return data.subarray(0, filled);
}

async function writeAtomic(calls: FileCalls, path: string, data: string | Uint8Array, mode: number): Promise<void> {
  const directory = dirname(path);
  // Unguessable, so it cannot exist yet.
  const temporary = join(directory, unfinishedName(randomBytes(12).toString("hex")));
  const file = await calls.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    try {
      await calls.writeAll(file, data);
      if (mode !== 0o600) await calls.fchmod(file, mode);
      await calls.fsync(file);
    } finally {
      await calls.close(file);
    }
    await calls.rename(temporary, path);
  } catch (error) {
    await calls.unlink(temporary).catch(() => {});
    throw error;
  }
  await syncDirectory(calls, directory);
}

/** Makes a rename survive a power failure. */
async function syncDirectory(calls: FileCalls, path: string): Promise<void> {
  const directory = await calls.open(path, O_RDONLY | O_DIRECTORY);
  using _closing = new Closing(directory);
  try {
    await calls.fsync(directory);
  } catch (error) {
    // Some file systems (FUSE, network) can't sync directories; the rename itself has happened.
    if (!["EINVAL", "ENOTSUP", "ENOSYS"].includes(errnoOf(error) ?? "")) throw error;
  }
}

/** Writes to the file itself; not synced, so a crash of the machine (not of podwright) may lose the data. */
async function writeInPlace(
  calls: FileCalls,
  path: string,
  data: string | Uint8Array,
  mode: number,
  how: number,
): Promise<void> {
  const flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | how;
  // Where the umask narrows the mode of a new file, it is private until its mode is set.
  const file = await calls.open(path, flags, (mode & umask()) === 0 ? mode : mode & 0o700);
  try {
    const info = fstatSync(file);
    requireRegular(info, path);
    if ((how === O_TRUNC || info.size === 0) && (info.mode & 0o7777) !== mode) await calls.fchmod(file, mode);
    await calls.writeAll(file, data);
  } finally {
    // Overwritten data goes to the disk on close (ext4's auto_da_alloc); appended data does not.
    if (how === O_APPEND) closeSync(file);
    else await calls.close(file);
  }
}

/** Directories that are being made. */
const making = new TransientMap<string, Promise<void>>();

/** A pod's parts want the same directories at the same time: one makes them, and the others wait for it. */
async function makeDirectory(calls: FileCalls, path: string, mode: number): Promise<void> {
  const key = `${mode} ${path}`;
  let made = making.get(key);
  if (made === undefined) {
    made = makeWithParents(calls, path, mode).finally(() => making.delete(key));
    making.set(key, made);
  }
  await made;
}

async function makeWithParents(calls: FileCalls, path: string, mode: number): Promise<void> {
  try {
    await makeOneDirectory(calls, path, mode);
  } catch (error) {
    const parent = dirname(path);
    if (errnoOf(error) !== "ENOENT" || parent === path) throw error;
    await makeDirectory(calls, parent, mode);
    // Once more only: below /proc, or at a dangling link, ENOENT does not concern the parent.
    await makeOneDirectory(calls, path, mode);
  }
}

async function makeOneDirectory(calls: FileCalls, path: string, mode: number): Promise<void> {
  try {
    await calls.mkdir(path, mode);
  } catch (error) {
    if (errnoOf(error) === "EEXIST" && (await calls.stat(path)).isDirectory()) return;
    throw error;
  }
  if ((mode & umask()) !== 0) await calls.chmod(path, mode);
}

async function list(calls: FileCalls, path: string): Promise<DirectoryEntry[]> {
  try {
    const entries = await calls.readdir(path);
    return entries.map((entry) => ({ name: entry.name, type: typeOf(entry) }));
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  }
}

async function fileInfo(calls: FileCalls, path: string): Promise<FileInfo | undefined> {
  try {
    const info = await calls.lstat(path);
    return {
      type: typeOf(info),
      size: info.size,
      mode: info.mode & 0o7777,
      modified: info.mtimeMs,
      inode: info.ino,
      device: info.dev,
    };
  } catch (error) {
    // A file in place of a parent directory also means that the path does not exist.
    if (["ENOENT", "ENOTDIR"].includes(errnoOf(error) ?? "")) return undefined;
    throw error;
  }
}

async function remove(calls: FileCalls, path: string): Promise<void> {
  try {
    await calls.unlink(path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    // Linux returns EISDIR where POSIX has EPERM.
    if (errnoOf(error) !== "EISDIR") throw error;
    await calls.rmdir(path);
  }
}
