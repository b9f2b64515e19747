import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { ExitCode, PodwrightError } from "../../base/errors.ts";
import type { Locks } from "../../ports/locks.ts";
import { openCLibrary } from "../processes/c-library.ts";
import { errnoOf, fileError } from "../file-error.ts";
import { systemProcesses } from "../processes/processes.ts";

const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/** Exit code of flock(1) when another process holds the lock. */
const heldByAnother = 1;

/** The holder of a lock, as written into the lock file. */
export interface LockHolder {
  readonly pid: number;
  readonly command: string;
}

/**
 * Locks by flock(2) on a file of mode 0600. The kernel keeps the lock while the holder has the file open, so it ends
 * with the holder, however that ends; children do not inherit it. Removing a file that others lock lets two processes
 * lock two files of the same name, unless each checks what it has locked: podwright does, and Go kubelets, which may
 * share `--lock-file`, do not.
 */
export const systemLocks: Locks = openLocks();

/** @param modules access to Node.js' built-in modules */
export function openLocks(modules?: (name: string) => unknown): Locks {
  return {
    tryLock: (path) => tryLock(path, false, modules),
    tryOwnLock: (path) => tryLock(path, true, modules),
    holder: (path) => Promise.resolve(readHolder(path)?.pid),
  };
}

async function tryLock(
  path: string,
  isOwn: boolean,
  modules?: (name: string) => unknown,
): Promise<Disposable | undefined> {
  for (;;) {
    const descriptor = openLockFile(path);
    let kept = false;
    try {
      if (!(await lockDescriptor(descriptor, path, modules))) return undefined;
      // The file may have been removed between open and lock: others would then lock a new one.
      if (!isStillAt(descriptor, path)) continue;
      writeHolder(descriptor);
      kept = true;
      return held(descriptor, isOwn ? path : undefined);
    } finally {
      if (!kept) closeSync(descriptor);
    }
  }
}

/** The current holder of the lock, for messages; undefined when free, or unknown. */
export function readHolder(path: string): LockHolder | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
  const [pidText = "", startTime, command = ""] = text.split("\n");
  const pid = Number(pidText);
  if (!Number.isSafeInteger(pid) || pid <= 0 || !systemProcesses.isAlive(pid)) return undefined;
  // A dead holder's pid may belong to another process by now.
  return startTimeOf(pid) === startTime ? { pid, command } : undefined;
}

function openLockFile(path: string): number {
  try {
    return openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  } catch (error) {
    throw fileError(error, path);
  }
}

/** LOCK_EX and LOCK_NB of flock(2). */
const exclusive = 2;
const nonBlocking = 4;

/** The outcome of the system call, where Node.js can make it (`node:ffi`, 26.1 or newer). */
type Called = "locked" | "refused" | "impossible";

function callFlock(descriptor: number, modules?: (name: string) => unknown): Called {
  try {
    const flock = openCLibrary(modules)("flock", ["int32", "int32"], "int32");
    return flock(descriptor, exclusive | nonBlocking) === 0 ? "locked" : "refused";
  } catch {
    return "impossible";
  }
}

/**
 * Locks an open file without waiting.
 * @returns false when another process holds the lock
 */
export async function lockDescriptor(
  descriptor: number,
  path: string,
  modules?: (name: string) => unknown,
): Promise<boolean> {
  const called = callFlock(descriptor, modules);
  return called === "locked" || (await lockByProgram(descriptor, path, called));
}

/**
 * Locks an open file. The lock belongs to the open file, not to the requesting process: flock(1) gets the file as its
 * descriptor 3, locks it and exits, and the lock stays with the descriptor here. flock(1) runs only when the system
 * call is unavailable or fails (to get its message), because starting a program takes 20 to 50 ms.
 * @returns false when another process holds it; without flock(1), any failure counts as that
 */
async function lockByProgram(descriptor: number, path: string, called: Called): Promise<boolean> {
  const child = spawn("flock", ["-n", "-x", "3"], { stdio: ["ignore", "ignore", "pipe", descriptor] });
  let complaint = "";
  child.stderr?.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  try {
    await once(child, "close");
  } catch (error) {
    if (called === "refused") return false;
    throw new PodwrightError(ExitCode.environment, "cannot run flock, which locks files", {
      cause: error,
      remedy: "install the package util-linux",
    });
  }
  const { exitCode } = child;
  if (exitCode === 0) return true;
  if (exitCode === heldByAnother) return false;
  const reason = complaint.trim() || `flock ended with ${exitCode}`;
  throw new PodwrightError(ExitCode.environment, `cannot lock ${path}: ${reason}`);
}

/** Whether the path still names the open file. */
export function isStillAt(descriptor: number, path: string): boolean {
  try {
    return lstatSync(path).ino === fstatSync(descriptor).ino;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw fileError(error, path);
  }
}

function writeHolder(descriptor: number): void {
  const command = process.argv.join(" ").replaceAll("\n", " ");
  ftruncateSync(descriptor);
  writeSync(descriptor, `${process.pid}\n${startTimeOf(process.pid) ?? ""}\n${command}\n`, 0);
}

/** @param removed the file's path if it is removed with the lock */
function held(descriptor: number, removed: string | undefined): Disposable {
  let isHeld = true;
  return {
    [Symbol.dispose]: () => {
      if (!isHeld) return;
      isHeld = false;
      ftruncateSync(descriptor);
      if (removed !== undefined) removeLocked(descriptor, removed);
      closeSync(descriptor);
    },
  };
}

/**
 * Removes the file while it is locked: a process that has opened it detects the removal. A file that replaced it stays.
 */
function removeLocked(descriptor: number, path: string): void {
  try {
    if (isStillAt(descriptor, path)) unlinkSync(path);
  } catch {
    // A leftover file is harmless, and the lock must be released.
  }
}

/** The process's start time in clock ticks since boot: together with the pid it identifies a process permanently. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // Field 22. Field 2, the name in parentheses, may contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
