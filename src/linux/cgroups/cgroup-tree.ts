import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmdirSync, statSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import type { EmptyRemoval } from "../../ports/cgroups.ts";
import type { Clock } from "../../ports/clock.ts";
import { FileError } from "../../ports/files.ts";
import { errnoOf, fileError } from "../file-error.ts";
import { threadCalls } from "../files/calls.ts";

/** How long removal waits for killed processes to leave: until then the kernel answers EBUSY. */
const removalLimitMs = 1_000;
const removalRetryMs = 20;

/*
 * Cgroups are kernel memory, and a round trip to another thread costs several times the call: with v1 a pod's life takes
 * some fifty of them. So they are made, removed and read synchronously. The kernel's lock that this takes is held for
 * microseconds, or for the milliseconds in which the kernel moves a process. What may take longer is left to another
 * thread: lowering a limit of memory, which may reclaim it first, and moving a process.
 */

/** Values whose write is not short. */
const slowFiles = /^(?:memory\.|hugetlb\.|cgroup\.procs$|cgroup\.subtree_control$)/;

/** Errors that mean the cgroup has been removed (meanwhile). */
const goneCodes: readonly string[] = ["ENOENT", "ENODEV"];

/**
 * Checks a logical cgroup path and returns its components. Paths contain names from pods: anything that could lead out
 * of the tree is rejected.
 */
export function cgroupParts(path: string): string[] {
  if (path === "/") return [];
  const parts = path.split("/").slice(1);
  const valid = path.startsWith("/") && parts.every((part) => part !== "" && part !== "." && part !== "..");
  if (!valid || path.includes("\0")) throw new RangeError(`${JSON.stringify(path)} is not a cgroup path`);
  return parts;
}

/** {@link cgroupParts} of a cgroup to be changed: the root belongs to the machine. */
export function changeableParts(path: string): string[] {
  const parts = cgroupParts(path);
  if (parts.length === 0) throw new RangeError("the root cgroup must not be changed");
  return parts;
}

/** Writes one value into a cgroup file. */
export async function writeValue(file: string, value: string): Promise<void> {
  try {
    const opened = openSync(file, "w");
    try {
      if (slowFiles.test(basename(file))) await threadCalls.writeAll(opened, value);
      else writeSync(opened, value);
    } finally {
      closeSync(opened);
    }
  } catch (error) {
    throw fileError(error, file);
  }
}

/** Reads a cgroup file without the final newline. */
export async function readValue(file: string): Promise<string> {
  try {
    return readFileSync(file, "latin1").trim();
  } catch (error) {
    throw fileError(error, file);
  }
}

/** Makes one cgroup directory unless it exists; its parent must exist. */
export async function makeCgroup(directory: string): Promise<void> {
  try {
    mkdirSync(directory, 0o755);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw fileError(error, directory);
  }
}

export async function cgroupExists(directory: string): Promise<boolean> {
  try {
    return statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw fileError(error, directory);
  }
}

/** The kernel and the enabled controllers determine which files a cgroup has. */
export async function fileExists(file: string): Promise<boolean> {
  try {
    return statSync(file, { throwIfNoEntry: false })?.isFile() === true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw fileError(error, file);
  }
}

/** Names of the direct children; empty when the cgroup is gone. */
export async function childCgroups(directory: string): Promise<string[]> {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (goneCodes.includes(errnoOf(error) ?? "")) return [];
    throw fileError(error, directory);
  }
}

/** Adds the processes of the cgroup and its descendants to `pids`. */
export async function addPids(directory: string, pids: Set<number>): Promise<void> {
  for (const pid of await ownPids(directory)) pids.add(pid);
  for (const child of await childCgroups(directory)) await addPids(join(directory, child), pids);
}

/** Processes in the cgroup itself; none when it is gone. */
export async function ownPids(directory: string): Promise<number[]> {
  try {
    const text = readFileSync(join(directory, "cgroup.procs"), "latin1");
    // Processes of other PID namespaces appear as 0.
    return text
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch (error) {
    // EOPNOTSUPP: a threaded cgroup of v2, whose processes are listed by its ancestor.
    if ([...goneCodes, "EOPNOTSUPP", "ENOTSUP"].includes(errnoOf(error) ?? "")) return [];
    throw fileError(error, directory);
  }
}

/** Moves each process into all of the cgroups. Resolves to the errors of those that stay, by their pids. */
export async function moveEach(
  pids: readonly number[],
  directories: readonly string[],
): Promise<ReadonlyMap<number, unknown>> {
  const failures = new Map<number, unknown>();
  for (const pid of pids) {
    try {
      for (const directory of directories) await writeValue(join(directory, "cgroup.procs"), `${pid}`);
    } catch (error) {
      failures.set(pid, error);
    }
  }
  return failures;
}

/** Removes an empty cgroup in one call. */
export async function removeEmptyCgroup(directory: string): Promise<EmptyRemoval> {
  try {
    rmdirSync(directory);
    return "removed";
  } catch (error) {
    return goneCodes.includes(errnoOf(error) ?? "") ? "absent" : "refused";
  }
}

/**
 * Removes the cgroup and its descendants, deepest first. Waits up to a second for dying processes, then rejects with
 * `EBUSY` and names the remaining ones.
 */
export async function removeCgroup(clock: Clock, directory: string): Promise<void> {
  const deadline = clock.monotonic() + removalLimitMs;
  for (;;) {
    try {
      await removeOnce(directory);
      return;
    } catch (error) {
      if (errnoOf(error) !== "EBUSY" || clock.monotonic() > deadline) throw await explained(error, directory);
    }
    await clock.sleep(`processes to leave ${directory}`, removalRetryMs);
  }
}

async function removeOnce(directory: string): Promise<void> {
  try {
    rmdirSync(directory);
  } catch (error) {
    const code = errnoOf(error) ?? "";
    if (goneCodes.includes(code)) return;
    const children = await childCgroups(directory);
    if (children.length === 0) throw error;
    for (const child of children) await removeOnce(join(directory, child));
    rmdirSync(directory);
  }
}

async function explained(error: unknown, directory: string): Promise<FileError> {
  const failure = fileError(error, directory);
  if (failure.code !== "EBUSY") return failure;
  const pids = new Set<number>();
  await addPids(directory, pids);
  if (pids.size === 0) return failure;
  const some = [...pids].slice(0, 10).join(", ");
  return new FileError(failure.code, directory, `${failure.message} (processes in it: ${some})`, { cause: error });
}
