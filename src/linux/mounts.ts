import type { MountPoint, Mounts } from "../ports/mounts.ts";
import { readMountInfo, type MountInfo } from "./mountinfo.ts";
import { systemProcesses } from "./processes.ts";

/** Network file systems answer late; past this the helper is killed and the outcome is looked up. */
const commandTimeoutMs = 120_000;

/**
 * Mounts by mount(8) and umount(8), which know the helpers of network file systems and the flags behind option names
 * (`bind`, `ro`, `rshared` …). Paths go to the kernel as given (`--no-canonicalize`): `/proc/PID/fd/N` stays a reference
 * to the opened file, and no path is resolved twice with different outcomes.
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
    const optionArguments = options.length === 0 ? [] : ["-o", options.join(",")];
    // No fstab is consulted when source, target and type are all given.
    const type = fileSystem === "" ? "none" : fileSystem;
    const arguments_ = ["--no-canonicalize", "-t", type, ...optionArguments, "--", source, target];
    await runMountCommand("mount", arguments_, `mount ${source} on ${target}`);
  },

  async unmount(target, options = {}) {
    requireAbsolute(target);
    if (!(await isMountPoint(target))) return;
    const arguments_ = ["--no-canonicalize", ...(options.lazy === true ? ["--lazy"] : []), "--", target];
    try {
      await runMountCommand("umount", arguments_, `unmount ${target}`);
    } catch (error) {
      // Someone else may have unmounted it meanwhile.
      if (await isMountPoint(target)) throw error;
    }
  },
};

async function isMountPoint(target: string): Promise<boolean> {
  return (await readMountInfo()).some((mount) => mount.target === target);
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
