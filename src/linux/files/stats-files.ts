import {
  closeSync,
  type Dir,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  type Stats,
} from "node:fs";
import { lstat, opendir, readdir, realpath, stat, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../ports/clock.ts";
import type {
  CgroupLayout,
  FileSystemUsage,
  MountedDevice,
  OpenFiles,
  StatsFiles,
  TreeUsage,
} from "../../ports/stats-files.ts";
import { errnoOf } from "../file-error.ts";
import { remoteMountOf } from "./far-storage.ts";
import { currentMountTable, recentMountOf } from "./mount-table.ts";
import { fileSystemNumberOf, type MountInfo, readMountInfo } from "./mountinfo.ts";
import { measuringThreads } from "./measuring-threads.ts";
import { upperDirectories, upperDirectory } from "./overlay-uppers.ts";
import { storageAnswers, usageOf } from "./remote-storage.ts";
import { TreeBounds } from "./tree-bounds.ts";

const cgroupRoot = "/sys/fs/cgroup";
/** The unit of st_blocks, whatever the file system's own block size. */
const blockBytes = 512;
const smallDirectoryBytes = 64 * 1024;
/** After this much synchronous reading the event loop gets a turn. */
const sliceMs = 4;

/**
 * The machine's statistics. Small kernel files are read synchronously (a twentieth of the cost of the thread pool), in
 * slices of a few milliseconds. Disks are read through the thread pool, and remote storage through a process that can
 * be abandoned.
 */
export async function openStatsFiles(clock: Clock): Promise<StatsFiles> {
  const slices = new Slices(clock);
  return {
    cgroups: cgroupLayout(readMountInfo()),
    readTexts: (paths) => slices.map(paths, readText),
    directories: async (path) => {
      await slices.pause();
      return subdirectories(path);
    },
    fileSystem: fileSystemUsage,
    deviceOf,
    fileSystemNumber,
    mountedDevices,
    upperDirectories: async (pids) => {
      const own = upperDirectories(currentMountTable().toString("latin1"));
      return await slices.map(pids, (pid) => upperDirectory(own, readText(`/proc/${pid}/mountinfo`)));
    },
    treeUsage: (path, signal) => treeUsage(path, signal),
    filesUsage,
    openFiles: async (pid) => {
      await slices.pause();
      return openFiles(pid);
    },
    changed: async (paths) => {
      await slices.pause();
      return firstChange(paths);
    },
  };
}

/** Where the controllers are. On hybrid systems the v1 hierarchies have them. */
export function cgroupLayout(mounts: readonly MountInfo[]): CgroupLayout {
  if (mounts.findLast(({ target }) => target === cgroupRoot)?.fileSystem === "cgroup2") {
    return { version: 2, root: cgroupRoot };
  }
  const controllers: Record<string, string> = {};
  for (const { fileSystem, target, superOptions } of mounts) {
    if (fileSystem !== "cgroup" || !target.startsWith(`${cgroupRoot}/`)) continue;
    for (const controller of superOptions) controllers[controller] ??= target;
  }
  return { version: 1, controllers };
}

/** Gives the event loop a turn after each slice of reading. */
class Slices {
  readonly #clock: Clock;
  #sinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async map<T, R>(items: readonly T[], read: (item: T) => R): Promise<R[]> {
    const results: R[] = [];
    await this.pause();
    for (const [index, item] of items.entries()) {
      results.push(read(item));
      // Reading the clock costs about as much as a file.
      if (index % 16 === 15) await this.pause();
    }
    return results;
  }

  async pause(): Promise<void> {
    if (this.#clock.monotonic() - this.#sinceMs < sliceMs) return;
    await setImmediate();
    this.#sinceMs = this.#clock.monotonic();
  }
}

/** All reads are synchronous, so one buffer is enough. */
let buffer = Buffer.allocUnsafe(64 * 1024);
/**
 * The kernel returns as many whole records as fit into its page. A shorter read was the last one, because no record of
 * these files is longer, so the read that would return 0 is saved.
 */
const surelyWhole = 2048;

/** Skips the stat calls of a general file read: three calls instead of five. */
function readText(path: string): string | undefined {
  let descriptor;
  try {
    descriptor = openSync(path, "r");
    let length = 0;
    for (;;) {
      if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.allocUnsafe(length)]);
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      length += read;
      if (read < surelyWhole) return buffer.toString("latin1", 0, length);
    }
  } catch {
    return undefined;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function subdirectories(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

/** Where paths with links lead, as far as that was asked: it tells the file system of a path without accessing it. */
const realPaths = new Map<string, string>();
const maxRealPaths = 2_000;

/** One call for the file system of a path. */
async function ask<T>(path: string, call: () => Promise<T>): Promise<T> {
  return await measuringThreads.ask(recentMountOf(realPaths.get(path) ?? path), async () => {
    const result = await call();
    // A path that is gone since needs none.
    if (!realPaths.has(path)) await realPathOf(path).catch(() => {});
    return result;
  });
}

async function realPathOf(path: string): Promise<string> {
  const real = await realpath(path);
  realPaths.delete(path);
  realPaths.set(path, real);
  for (const oldest of realPaths.keys()) {
    if (realPaths.size <= maxRealPaths) break;
    realPaths.delete(oldest);
  }
  return real;
}

/** @throws FileError `ETIMEDOUT`; anything else means that there is nothing to measure */
function noneUnlessLate(error: unknown): undefined {
  if (errnoOf(error) === "ETIMEDOUT") throw error;
}

async function fileSystemUsage(path: string): Promise<FileSystemUsage | undefined> {
  try {
    if (remoteMountOf(path) !== undefined) return await usageOf(path);
    const { bsize, blocks, bavail, bfree, files, ffree } = await ask(path, () => statfs(path));
    return {
      capacityBytes: blocks * bsize,
      availableBytes: bavail * bsize,
      usedBytes: (blocks - bfree) * bsize,
      inodes: files,
      inodesFree: ffree,
    };
  } catch (error) {
    return noneUnlessLate(error);
  }
}

async function fileSystemNumber(path: string): Promise<number | undefined> {
  try {
    const read = async (): Promise<Parameters<typeof fileSystemNumberOf>[0]> => {
      return { dev: (await stat(path)).dev, type: (await statfs(path)).type };
    };
    await storageAnswers(path);
    const found = await ask(path, read);
    return fileSystemNumberOf(found, recentMountOf(realPaths.get(path) ?? path));
  } catch (error) {
    return noneUnlessLate(error);
  }
}

async function deviceOf(path: string): Promise<string | undefined> {
  try {
    await storageAnswers(path);
    const real = await ask(path, () => realPathOf(path));
    const holds = ({ target }: MountInfo): boolean =>
      target === "/" || real === target || real.startsWith(`${target}/`);
    const deepest = readMountInfo()
      .filter(holds)
      .reduce<MountInfo | undefined>((best, mount) => {
        return best === undefined || mount.target.length >= best.target.length ? mount : best;
      }, undefined);
    return deepest?.source;
  } catch (error) {
    return noneUnlessLate(error);
  }
}

async function mountedDevices(): Promise<MountedDevice[]> {
  const mounts = readMountInfo();
  const blocks = mounts.filter(({ source }) => source.startsWith("/dev/"));
  return [...new Map(blocks.map(({ source, device }) => [source, { source, number: device }])).values()];
}

/** One call of a walk at a time, all for the file system on which it is. */
type Walk = <T>(call: () => Promise<T>) => Promise<T>;

/** @param real a path without links */
function walkOn(real: string): Walk {
  const mount = recentMountOf(real);
  return async (call) => await measuringThreads.walk(mount, call);
}

/** For a path that may lead elsewhere. */
async function walkAt(path: string): Promise<Walk> {
  return walkOn(realPaths.get(path) ?? (await walkOn(path)(() => realPathOf(path))));
}

async function treeUsage(path: string, signal: AbortSignal): Promise<TreeUsage | undefined> {
  // The table has real paths; the top itself may be a mount.
  const top = dirname(path);
  const parent = await walkOn(realPaths.get(top) ?? top)(() => realPathOf(top)).catch(noneUnlessLate);
  if (parent === undefined) return undefined;
  const root = join(parent, basename(path));
  const bounds = new TreeBounds(root);
  const walk = walkOn(root);
  const seen = new Set<string>();
  let [bytes, inodes] = [0, 0];
  const pending: CountedDirectory[] = [];
  const count = async (at: string): Promise<void> => {
    if (bounds.isMount(at)) return;
    const info = await walk(() => lstat(at)).catch(noneUnlessLate);
    if (info === undefined || !bounds.includes(at, info.dev)) return;
    const isDirectory = info.isDirectory();
    if (!isDirectory && info.nlink > 1) {
      const file = `${info.dev} ${info.ino}`;
      if (seen.has(file)) return;
      seen.add(file);
    }
    bytes += info.blocks * blockBytes;
    inodes++;
    if (isDirectory) pending.push({ path: at, isSmall: isSmallDirectory(info) });
  };
  await count(root);
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    signal.throwIfAborted();
    try {
      for await (const name of namesIn(directory, walk)) {
        if (signal.aborted) break;
        await count(join(directory.path, name));
      }
    } catch (error) {
      // Removed meanwhile, or what was counted is not all.
      noneUnlessLate(error);
    }
  }
  signal.throwIfAborted();
  return inodes === 0 ? undefined : { bytes, inodes };
}

interface CountedDirectory {
  readonly path: string;
  readonly isSmall: boolean;
}

/**
 * Whether it has at most some thousand entries. File systems of block devices keep a directory's entries in its own
 * blocks; others may say any size.
 */
function isSmallDirectory({ dev, size }: Stats): boolean {
  // The major number of makedev(3); anonymous devices (overlay, FUSE, NFS) have 0.
  const major = Math.floor(dev / 256) % 4096;
  return major !== 0 && size <= smallDirectoryBytes;
}

/** Small directories are read by one call instead of one for each 32 entries, and two more. */
async function* namesIn({ path, isSmall }: CountedDirectory, walk: Walk): AsyncGenerator<string> {
  if (isSmall) return yield* await walk(() => readdir(path));
  const directory = await walk(() => opendir(path));
  try {
    for (;;) {
      const entry = await walk(() => directory.read());
      if (entry === null) return;
      yield entry.name;
    }
  } finally {
    await closed(directory, walk);
  }
}

/** While other calls hang it is closed beside them: nobody else would. */
async function closed(directory: Dir, walk: Walk): Promise<void> {
  await walk(() => directory.close()).catch((error: unknown) => {
    if (errnoOf(error) !== "ETIMEDOUT") throw error;
    directory.close().catch(() => {});
  });
}

async function filesUsage(directory: string): Promise<TreeUsage | undefined> {
  try {
    const walk = await walkAt(directory);
    const isSmall = isSmallDirectory(await walk(() => lstat(directory)));
    let [bytes, inodes] = [0, 0];
    for await (const name of namesIn({ path: directory, isSmall }, walk)) {
      // A file that is gone meanwhile counts nothing.
      const info = await walk(() => lstat(join(directory, name))).catch(noneUnlessLate);
      if (info?.isFile() !== true) continue;
      bytes += info.blocks * blockBytes;
      inodes++;
    }
    return { bytes, inodes };
  } catch (error) {
    return noneUnlessLate(error);
  }
}

function firstChange(paths: readonly string[]): number | undefined {
  const times = paths.flatMap((path) => {
    try {
      return lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? [];
    } catch {
      return [];
    }
  });
  return times.length === 0 ? undefined : Math.min(...times);
}

/** At most this many descriptors of a process are checked for sockets; more are only counted. */
const maxAskedDescriptors = 4096;

function openFiles(pid: number): OpenFiles | undefined {
  try {
    const path = `/proc/${pid}/fd`;
    let [descriptors, sockets] = [0, 0];
    const directory = opendirSync(path);
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        descriptors++;
        if (descriptors <= maxAskedDescriptors && isSocket(join(path, entry.name))) sockets++;
      }
    } finally {
      directory.closeSync();
    }
    return { descriptors, sockets };
  } catch {
    return undefined;
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false;
  }
}
