import { closeSync, openSync, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { EmptyRemoval } from "../../ports/cgroups.ts";
import type { Clock } from "../../ports/clock.ts";
import { FileError } from "../../ports/files.ts";
import { errnoOf, fileError } from "../file-error.ts";
import { mkdir, rmdir, stat, writeAll } from "../files/calls.ts";

/** How long removal waits for processes that have been killed to leave: the kernel answers EBUSY until they have. */
const removalLimitMs = 1_000;
const removalRetryMs = 20;

/*
 * Files of cgroups are the kernel's memory: they are opened and read at once, as waiting for another thread costs ten times
 * as much. What takes the kernel's locks (making and removing a cgroup, writing a value) is left to another thread.
 */

/** Errors that mean: the cgroup has been removed (meanwhile). */
const goneCodes: readonly string[] = ["ENOENT", "ENODEV"];

/**
 * Checks a logical cgroup path and returns its parts. Paths hold names that come from pods: what could lead out of the
 * tree is refused.
 */
export function cgroupParts(path: string): string[] {
  if (path === "/") return [];
  const parts = path.split("/").slice(1);
  const valid = path.startsWith("/") && parts.every((part) => part !== "" && part !== "." && part !== "..");
  if (!valid || path.includes("\0")) throw new RangeError(`${JSON.stringify(path)} is not a cgroup path`);
  return parts;
}

/** {@link cgroupParts} of a cgroup that is to be changed: the root is the machine's, never ours. */
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
      // A lower limit may have to take memory away first.
      await writeAll(opened, value);
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

/** Makes one cgroup directory, unless it is there; the parent must be. */
export async function makeCgroup(directory: string): Promise<void> {
  try {
    await mkdir(directory, 0o755);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw fileError(error, directory);
  }
}

/** True when the cgroup is there. */
export async function cgroupExists(directory: string): Promise<boolean> {
  try {
    return (await stat(directory)).isDirectory();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw fileError(error, directory);
  }
}

/** True when a cgroup has a file of that name: the kernel and the controllers decide. */
export async function fileExists(file: string): Promise<boolean> {
  try {
    return (await stat(file)).isFile();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw fileError(error, file);
  }
}

/** Names of the direct children; none when the cgroup is gone. */
export async function childCgroups(directory: string): Promise<string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch (error) {
    if (goneCodes.includes(errnoOf(error) ?? "")) return [];
    throw fileError(error, directory);
  }
}

/** Adds the processes of the cgroup and of those below it to `pids`. */
export async function addPids(directory: string, pids: Set<number>): Promise<void> {
  for (const pid of await ownPids(directory)) pids.add(pid);
  for (const child of await childCgroups(directory)) await addPids(join(directory, child), pids);
}

async function ownPids(directory: string): Promise<number[]> {
  try {
    const text = readFileSync(join(directory, "cgroup.procs"), "latin1");
    // Processes of other PID namespaces appear as 0.
    return text
      .split("\n")
      .map(Number)
      .filter((pid) => pid > 0);
  } catch (error) {
    // EOPNOTSUPP: a threaded cgroup of v2, whose processes are listed by the cgroup above it.
    if ([...goneCodes, "EOPNOTSUPP", "ENOTSUP"].includes(errnoOf(error) ?? "")) return [];
    throw fileError(error, directory);
  }
}

/** Removes the cgroup when there is nothing in it, which is one call. */
export async function removeEmptyCgroup(directory: string): Promise<EmptyRemoval> {
  try {
    await rmdir(directory);
    return "removed";
  } catch (error) {
    return goneCodes.includes(errnoOf(error) ?? "") ? "absent" : "refused";
  }
}

/**
 * Removes the cgroup and those below it, the deepest first. Waits up to a second for dying processes, then rejects with
 * `EBUSY` and names those that are left.
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
    await rmdir(directory);
  } catch (error) {
    const code = errnoOf(error) ?? "";
    if (goneCodes.includes(code)) return;
    const children = await childCgroups(directory);
    if (children.length === 0) throw error;
    for (const child of children) await removeOnce(join(directory, child));
    await rmdir(directory);
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
