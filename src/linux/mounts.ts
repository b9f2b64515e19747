import { statfs } from "node:fs/promises";
import type { MountPoint, Mounts } from "../ports/mounts.ts";
import { readMountInfo, type MountInfo } from "./mountinfo.ts";
import { systemProcesses } from "./processes.ts";
import { areOfTmpfs, type TmpfsCalls, tmpfsCalls } from "./tmpfs-calls.ts";

/** Network file systems answer late; past this the helper is killed and the outcome is looked up. */
const commandTimeoutMs = 120_000;

/**
 * Mounts by mount(8) and umount(8), which know the helpers of network file systems and the flags behind option names
 * (`bind`, `ro`, `rshared` …). Paths go to the kernel as given (`--no-canonicalize`): `/proc/PID/fd/N` stays a reference
 * to the opened file, and no path is resolved twice with different outcomes. Memory file systems are mounted without
 * them where that can be done.
 */
export const systemMounts: Mounts = {
  async list() {
    return (await readMountInfo()).map(mountPoint);
  },

  async mount({ source, target, fileSystem, options }) {
    requireAbsolute(target);
    for (const option of options) {
      // A comma would smuggle in further options.
      if (!/^[^,\n\0]+$/.test(option)) throw new Error(`mount option ${JSON.stringify(option)} is not usable`);
    }
    const isPlain = fileSystem === "tmpfs" && areOfTmpfs(options) && !source.includes("\0");
    if (isPlain && calls()?.mount(source, target, options.join(",")) === true) return;
    const optionArguments = options.length === 0 ? [] : ["-o", options.join(",")];
    // No fstab is consulted when source, target and type are all given.
    const type = fileSystem === "" ? "none" : fileSystem;
    const arguments_ = ["--no-canonicalize", "-t", type, ...optionArguments, "--", source, target];
    await runMountCommand("mount", arguments_, `mount ${source} on ${target}`);
  },

  async unmount(target, options = {}) {
    requireAbsolute(target);
    const mounted = await topmost(target);
    if (mounted === undefined) return;
    const isPlain = mounted.fileSystem === "tmpfs" && options.lazy !== true;
    if (isPlain && (await isSmall(target)) && calls()?.unmount(target) === true) return;
    const arguments_ = ["--no-canonicalize", ...(options.lazy === true ? ["--lazy"] : []), "--", target];
    try {
      await runMountCommand("umount", arguments_, `unmount ${target}`);
    } catch (error) {
      // Someone else may have unmounted it meanwhile.
      if ((await topmost(target)) !== undefined) throw error;
    }
  },
};

let known: { readonly calls: TmpfsCalls | undefined } | undefined;

/** Looked for when the first is needed: most commands need none. */
function calls(): TmpfsCalls | undefined {
  known ??= { calls: tmpfsCalls() };
  return known.calls;
}

/** Freeing what is in it is the call's work: of these it takes less than a millisecond. */
const small = { bytes: 4 << 20, files: 500 };

/** Whether little is in a memory file system. One that has no limit does not say how much. */
async function isSmall(target: string): Promise<boolean> {
  try {
    const { bsize, blocks, bfree, files, ffree } = await statfs(target);
    return blocks > 0 && files > 0 && (blocks - bfree) * bsize <= small.bytes && files - ffree <= small.files;
  } catch {
    return false;
  }
}

/** Of several mounts on one another the one that is seen. */
async function topmost(target: string): Promise<MountInfo | undefined> {
  return (await readMountInfo()).findLast((mount) => mount.target === target);
}

/** The options of the mount and those of its file system in one list, as findmnt(8) shows them. */
function mountPoint({ target, source, fileSystem, options, superOptions }: MountInfo): MountPoint {
  const shared = superOptions.filter((option) => option !== "" && !options.includes(option));
  return { target, source, fileSystem, options: [...options, ...shared.filter((option) => !isAccess(option))] };
}

/** Read-only or not is told by the mount's own flag; the file system's may differ. */
function isAccess(option: string): boolean {
  return option === "rw" || option === "ro";
}

async function runMountCommand(program: "mount" | "umount", arguments_: string[], what: string): Promise<void> {
  const result = await systemProcesses.run(program, arguments_, {
    timeoutMs: commandTimeoutMs,
    environment: { LC_ALL: "C" },
  });
  if (result.exitCode === 0) return;
  const outcome = result.exitCode === undefined ? `ended by ${result.signal}` : `exit code ${result.exitCode}`;
  throw new Error(`cannot ${what}: ${result.stderr.trim().replaceAll("\n", "; ") || outcome}`);
}

function requireAbsolute(path: string): void {
  if (!path.startsWith("/") || path.includes("\0")) {
    throw new Error(`mount target ${JSON.stringify(path)} is not absolute`);
  }
}
