import { spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { orAborted } from "../../base/abort.ts";
import { FileError } from "../../ports/files.ts";
import type { FileSystemUsage } from "../../ports/stats-files.ts";
import { errnoOf } from "../file-error.ts";
import { systemClock } from "../processes/clock.ts";
import { currentMountTable } from "./mount-table.ts";
import { type MountInfo, parseMountInfo } from "./mountinfo.ts";

/**
 * Storage behind a server or another process, which may never respond. The kernel then blocks the caller: a thread
 * cannot be interrupted, and Node.js has four of them for all file work. So a separate process makes the first access
 * and can be abandoned: one for each mount, and no other before it has exited.
 */

const kinds = "fuse|nfs|cifs|smb|ceph|9p|virtiofs|afs|gfs|ocfs|lustre|glusterfs|beegfs|orangefs|pvfs";
const remoteKind = new RegExp(`^(?:${kinds})(?!ctl)`, "u");
const remoteLine = new RegExp(`^.* - (?:${kinds})(?!ctl).*$`, "gmu");

/** Whether file systems of the type depend on a server or another process. */
export function isRemote(fileSystem: string): boolean {
  return remoteKind.test(fileSystem);
}

/** A response is abandoned after this time. */
export const answerLimitMs = 10_000;
/** Linux follows this many links for one path. */
const maxLinks = 40;

interface Asked {
  readonly sinceMs: number;
  readonly answer: Promise<string>;
  /** Nothing waits for the response any more, but the process has not exited. */
  isGivenUp: boolean;
}

/** Accesses in progress, by mount point. */
const asked = new Map<string, Asked>();

/** Of the last table. */
let found: { readonly table: Buffer; readonly targets: ReadonlySet<string> } | undefined;

/** The mount points of this process's namespace that depend on a server or another process. */
export function remoteMounts(): ReadonlySet<string> {
  // Needs the current table: a thread that works in a new mount may hang forever.
  const table = currentMountTable();
  if (found?.table !== table) {
    const lines = table.toString("latin1").match(remoteLine) ?? [];
    found = { table, targets: new Set(parseMountInfo(lines.join("\n")).map(({ target }: MountInfo) => target)) };
  }
  return found.targets;
}

/** The first remote mount that a path leads to or through; undefined: none. Nothing behind such a mount is accessed. */
export function remoteMountOf(path: string, remote: ReadonlySet<string> = remoteMounts()): string | undefined {
  if (remote.size === 0) return undefined;
  const pending = path.split("/");
  let [here, links] = ["/", 0];
  if (remote.has(here)) return here;
  for (let name = pending.shift(); name !== undefined; name = pending.shift()) {
    if (name === "" || name === ".") continue;
    if (name === "..") {
      here = dirname(here);
      continue;
    }
    const next = join(here, name);
    if (remote.has(next)) return next;
    const target = linkAt(next);
    if (target === undefined) {
      here = next;
      continue;
    }
    if (++links > maxLinks) return undefined;
    pending.unshift(...target.split("/"));
    if (target.startsWith("/")) here = "/";
  }
  return undefined;
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** Work in progress in remote storage, each on its own thread. */
const working = new Set<StorageWork>();
/** Limits the threads that hanging work can block; Node.js has four for all file work. */
const mostHanging = 2;

/** Work in remote storage, counted until it is disposed of, whether or not anything still waits for it. */
export class StorageWork implements Disposable {
  readonly mount: string;
  #sinceMs = systemClock.monotonic();

  /** @throws FileError `ETIMEDOUT` while other work hangs on the mount, or too much of it on others */
  constructor(mount: string) {
    const lateMs = systemClock.monotonic() - answerLimitMs;
    const hanging = [...working].filter((other) => other.#sinceMs < lateMs);
    const same = hanging.find((other) => other.mount === mount) ?? hanging[mostHanging - 1];
    if (same !== undefined) throw noAnswer(same.mount, same.#sinceMs);
    this.mount = mount;
    working.add(this);
  }

  /** The storage has responded. */
  goesOn(): void {
    this.#sinceMs = systemClock.monotonic();
  }

  [Symbol.dispose](): void {
    working.delete(this);
  }
}

/**
 * Does short work in the storage behind a path once that has responded; immediately for local storage. Storage may fail
 * in between: work that takes long blocks further work on the same mount, or on all remote mounts.
 * @throws FileError `ETIMEDOUT` without a response
 */
export async function inStorage<T>(path: string, work: () => Promise<T>): Promise<T> {
  const mount = remoteMountOf(path);
  if (mount === undefined) return await work();
  await mountAnswers(mount);
  using _own = new StorageWork(mount);
  return await work();
}

/**
 * Resolves once the storage of a remote mount has responded.
 * @throws FileError `ETIMEDOUT` without a response
 */
export async function mountAnswers(mount: string, signal?: AbortSignal): Promise<void> {
  try {
    await answered(asked.get(mount) ?? ask(mount, mount), mount, signal);
  } catch (error) {
    // Any other error is left to the actual work.
    if (errnoOf(error) === "ETIMEDOUT" || signal?.aborted === true) throw error;
  }
}

/**
 * statfs(2) of the file system at a path.
 * @throws FileError `ETIMEDOUT` without a response
 */
export async function usageOf(path: string, signal?: AbortSignal): Promise<FileSystemUsage> {
  const mount = remoteMountOf(path) ?? path;
  for (let other = asked.get(mount); other !== undefined; other = asked.get(mount)) {
    await answered(other, mount, signal).catch((error: unknown) => {
      if (errnoOf(error) === "ETIMEDOUT" || signal?.aborted === true) throw error;
    });
  }
  const said = await answered(ask(mount, path), mount, signal);
  const [size = 0, blocks = 0, free = 0, available = 0, inodes = 0, inodesFree = 0] = said.split(" ").map(Number);
  const figures = [size, blocks, free, available, inodes, inodesFree];
  if (said === "" || figures.some((figure) => !Number.isFinite(figure))) {
    throw new FileError("EIO", path, `EIO: the size of the file system at '${path}' cannot be determined: ${said}`);
  }
  return {
    capacityBytes: blocks * size,
    availableBytes: available * size,
    usedBytes: (blocks - free) * size,
    inodes,
    inodesFree,
  };
}

const figures = "%s %b %f %a %c %d";

async function answered({ answer, isGivenUp, sinceMs }: Asked, mount: string, signal?: AbortSignal): Promise<string> {
  signal?.throwIfAborted();
  if (isGivenUp) throw noAnswer(mount, sinceMs);
  if (signal === undefined) return await answer;
  await orAborted(
    answer.then(
      () => {},
      () => {},
    ),
    signal,
  );
  signal.throwIfAborted();
  return await answer;
}

/** Accesses the path in a separate process. */
function ask(mount: string, path: string): Asked {
  const sinceMs = systemClock.monotonic();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  promise.catch(() => {});
  const own: Asked = { sinceMs, answer: promise, isGivenUp: false };
  asked.set(mount, own);
  const child = spawn("stat", ["-f", "-c", figures, "--", path], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, LC_ALL: "C" },
  });
  let [said, complaint] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  const limit = systemClock.timer(`storage at ${mount} to answer`, answerLimitMs, () => {
    own.isGivenUp = true;
    child.kill("SIGKILL");
    reject(noAnswer(mount, sinceMs));
    // It must not keep podwright alive.
    child.stdout.destroy();
    child.stderr.destroy();
    child.unref();
  });
  // A process blocked in the kernel survives a kill: until it exits, the mount is not accessed again.
  const ended = (): void => {
    limit[Symbol.dispose]();
    if (asked.get(mount) === own) asked.delete(mount);
  };
  child.once("exit", ended);
  child.once("error", (error) => {
    ended();
    reject(new FileError(errnoOf(error) ?? "EIO", path, `cannot run stat: ${error.message}`, { cause: error }));
  });
  child.once("close", (exitCode) => {
    if (exitCode === 0) resolve(said.trim());
    else reject(new FileError(codeOf(complaint), path, complaint.trim() || `stat ended with ${exitCode}`));
  });
  return own;
}

function noAnswer(mount: string, sinceMs: number): FileError {
  const seconds = Math.round((systemClock.monotonic() - sinceMs) / 1000);
  return new FileError("ETIMEDOUT", mount, `ETIMEDOUT: storage at '${mount}' has not answered for ${seconds} s`);
}

/** stat(1) reports errors only as text. */
function codeOf(complaint: string): string {
  if (complaint.includes("No such file")) return "ENOENT";
  if (complaint.includes("endpoint is not connected")) return "ENOTCONN";
  if (complaint.includes("Stale file handle")) return "ESTALE";
  return complaint.includes("Permission denied") ? "EACCES" : "EIO";
}
