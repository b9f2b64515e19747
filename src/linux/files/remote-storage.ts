import { spawn } from "node:child_process";
import { orAborted } from "../../base/abort.ts";
import { FileError } from "../../ports/files.ts";
import type { FileSystemUsage } from "../../ports/stats-files.ts";
import { errnoOf } from "../file-error.ts";
import { systemClock } from "../processes/clock.ts";
import { remoteMountOf } from "./far-storage.ts";

/**
 * Storage behind a server or another process, which may never respond. The kernel then blocks the caller: a thread
 * cannot be interrupted, and Node.js has four of them for all file work. So before long work in it a separate process
 * makes the first access and can be abandoned: one for each mount, and no other before it has exited.
 */

/** A response is abandoned after this time. */
export const answerLimitMs = 10_000;

interface Asked {
  readonly sinceMs: number;
  readonly answer: Promise<string>;
  /** Nothing waits for the response any more, but the process has not exited. */
  isGivenUp: boolean;
}

/** Accesses in progress, by mount point. */
const asked = new Map<string, Asked>();

/**
 * Resolves once the remote storage behind a path has responded; at once for local storage.
 * @throws FileError `ETIMEDOUT` without a response
 */
export async function storageAnswers(path: string): Promise<void> {
  const mount = remoteMountOf(path);
  if (mount !== undefined) await mountAnswers(mount);
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

export function noAnswer(mount: string, sinceMs: number): FileError {
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
