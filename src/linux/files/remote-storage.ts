import { spawn } from "node:child_process";
import { readlinkSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { orAborted } from "../../base/abort.ts";
import { FileError } from "../../ports/files.ts";
import type { FileSystemUsage } from "../../ports/stats-files.ts";
import { errnoOf } from "../file-error.ts";
import { systemClock } from "../processes/clock.ts";
import { type MountInfo, parseMountInfo, readMountTable } from "./mountinfo.ts";

/**
 * Storage behind a server or another process, which may never answer. The kernel then holds whoever asks; a thread cannot
 * be called back, and Node.js has four of them for all file work. So another process asks, which can be given up: one
 * for each mount, and no further one before it has ended.
 */

const kinds = "fuse|nfs|cifs|smb|ceph|9p|virtiofs|afs|gfs|ocfs|lustre|glusterfs|beegfs|orangefs|pvfs";
const remoteKind = new RegExp(`^(?:${kinds})(?!ctl)`, "u");
const remoteLine = new RegExp(`^.* - (?:${kinds})(?!ctl).*$`, "gmu");

/** Whether a server or another process is behind file systems of the type. */
export function isRemote(fileSystem: string): boolean {
  return remoteKind.test(fileSystem);
}

/** After this long an answer is given up. */
export const answerLimitMs = 10_000;
/** As many links as Linux follows for one path. */
const maxLinks = 40;

interface Asked {
  readonly sinceMs: number;
  readonly answer: Promise<string>;
  /** Nobody waits for its answer any more, and the process that asked has not ended. */
  isGivenUp: boolean;
}

/** By mount point: what was asked last and is still under way. */
const asked = new Map<string, Asked>();

/** The mount points of this process's namespace with a server or another process behind them. */
function remoteMounts(): ReadonlySet<string> {
  // A thread that works in a mount of a moment ago may hang for good: an older table will not do.
  const lines = readMountTable().toString("latin1").match(remoteLine) ?? [];
  return new Set(parseMountInfo(lines.join("\n")).map(({ target }: MountInfo) => target));
}

/**
 * The first mount with a server or another process behind it that a path leads to or through; undefined: none. Nothing
 * behind such a mount is touched.
 */
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

/** Short work under way in remote storage, each piece on a thread of its own. */
const working = new Set<{ readonly mount: string; readonly sinceMs: number }>();
/** Work that hangs after all may keep so many of Node.js' threads. */
const mostHanging = 2;

/**
 * Does short work in the storage behind a path once that has answered; at once where nothing but this machine is behind
 * it. Storage may die in between: what has been under way for long keeps others from the same, or from all that is
 * remote.
 * @throws FileError `ETIMEDOUT` when it does not answer
 */
export async function inStorage<T>(path: string, work: () => Promise<T>): Promise<T> {
  const mount = remoteMountOf(path);
  if (mount === undefined) return await work();
  const lateMs = systemClock.monotonic() - answerLimitMs;
  const hanging = [...working].filter(({ sinceMs }) => sinceMs < lateMs);
  const same = hanging.find((other) => other.mount === mount) ?? hanging[mostHanging - 1];
  if (same !== undefined) throw noAnswer(same.mount, same.sinceMs);
  await mountAnswers(mount);
  const own = { mount, sinceMs: systemClock.monotonic() };
  working.add(own);
  try {
    return await work();
  } finally {
    working.delete(own);
  }
}

/**
 * Resolves once the storage behind a path has answered, at once where nothing but this machine is behind it.
 * @throws FileError `ETIMEDOUT` when it does not
 */
export async function storageAnswers(path: string, signal?: AbortSignal): Promise<void> {
  const mount = remoteMountOf(path);
  if (mount !== undefined) await mountAnswers(mount, signal);
}

async function mountAnswers(mount: string, signal?: AbortSignal): Promise<void> {
  try {
    await answered(asked.get(mount) ?? ask(mount, mount), mount, signal);
  } catch (error) {
    // Whatever else it answers is the business of whoever works there.
    if (errnoOf(error) === "ETIMEDOUT" || signal?.aborted === true) throw error;
  }
}

/**
 * What statfs(2) says of the file system at a path.
 * @throws FileError `ETIMEDOUT` when it does not answer
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
    throw new FileError("EIO", path, `EIO: the size of the file system at '${path}' cannot be told: ${said}`);
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

/** Asks in another process. */
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
  // A process that the kernel holds does not end by being killed either: until it does, nobody asks again.
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

/** stat(1) says what went wrong in words. */
function codeOf(complaint: string): string {
  if (complaint.includes("No such file")) return "ENOENT";
  if (complaint.includes("endpoint is not connected")) return "ENOTCONN";
  if (complaint.includes("Stale file handle")) return "ESTALE";
  return complaint.includes("Permission denied") ? "EACCES" : "EIO";
}
