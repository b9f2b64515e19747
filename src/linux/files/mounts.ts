import { statfs } from "node:fs/promises";
import type { MountPoint, Mounts } from "../../ports/mounts.ts";
import type { Processes } from "../../ports/processes.ts";
import { isRemote } from "./far-storage.ts";
import { MountCommands } from "./mount-commands.ts";
import { currentMountTable } from "./mount-table.ts";
import { type MountInfo, mountsAbove, mountsBelow, readMountInfo } from "./mountinfo.ts";
import { systemProcesses } from "../processes/processes.ts";
import { areOfTmpfs, type TmpfsCalls, tmpfsCalls } from "./tmpfs-calls.ts";

/**
 * Mounts by mount(8) and umount(8), which know the helpers of network file systems and the flags of option names
 * (`bind`, `ro`, `rshared` …). Paths go to the kernel as given (`--no-canonicalize`): `/proc/PID/fd/N` stays a
 * reference to the opened file, and no path is resolved twice with different outcomes. Memory file systems are mounted
 * by system calls where possible.
 */
export const systemMounts: Mounts = mountsWith(tmpfsCalls);

/** @param findCalls called at the first use: most commands mount nothing */
export function mountsWith(
  findCalls: () => TmpfsCalls | undefined,
  processes: Pick<Processes, "run" | "isAlive"> = systemProcesses,
): Mounts {
  const commands = new MountCommands(processes);
  let found: { readonly calls: TmpfsCalls | undefined } | undefined;
  const calls = (): TmpfsCalls | undefined => (found ??= { calls: findCalls() }).calls;
  return {
    async list() {
      return readMountInfo().map(mountPoint);
    },

    async below(path) {
      return mountsBelow(currentMountTable(), path).map(mountPoint);
    },

    async mount({ source, target, fileSystem, options }) {
      requireAbsolute(target);
      for (const option of options) {
        // A comma would inject further options.
        if (!/^[^,\n\0]+$/.test(option)) throw new Error(`mount option ${JSON.stringify(option)} is not usable`);
      }
      const isPlain = fileSystem === "tmpfs" && areOfTmpfs(options) && !source.includes("\0");
      if (isPlain && calls()?.mount(source, target, options.join(",")) === true) return;
      const optionArguments = options.length === 0 ? [] : ["-o", options.join(",")];
      // With source, target and type given, fstab is not consulted.
      const type = fileSystem === "" ? "none" : fileSystem;
      const words = ["--no-canonicalize", "-t", type, ...optionArguments, "--", source, target];
      await commands.run({ program: "mount", target, arguments: words, what: `mount ${source} on ${target}` });
    },

    async unmount(target, options = {}) {
      requireAbsolute(target);
      const above = mountsAbove(currentMountTable(), target);
      const mounted = topmost(above, target);
      if (mounted === undefined) return;
      const { lazy = false, force = false } = options;
      const isPlain = mounted.fileSystem === "tmpfs" && !lazy && isOnLocal(above, mounted);
      if (isPlain && (await isSmallMemory(target)) && calls()?.unmount(target) === true) return;
      const flags = [...(lazy ? ["--lazy"] : []), ...(force ? ["--force"] : [])];
      const words = ["--no-canonicalize", ...flags, "--", target];
      try {
        const what = `unmount ${target}`;
        await commands.run({ program: "umount", target, arguments: words, what, isForced: force });
      } catch (error) {
        // It may have been unmounted meanwhile.
        if (topmost(mountsAbove(currentMountTable(), target), target) !== undefined) throw error;
      }
    },
  };
}

/** The unmount call frees the contents: below these limits within a millisecond. Tokens and secrets are smaller. */
const small = { bytes: 256 << 10, files: 64 };
/** TMPFS_MAGIC of statfs(2). */
const tmpfsMagic = 0x01021994;

/** Whether the path is a memory file system with little in it. One without a limit does not report its usage. */
async function isSmallMemory(target: string): Promise<boolean> {
  try {
    const { type, bsize, blocks, bfree, files, ffree } = await statfs(target);
    const isLimited = type === tmpfsMagic && blocks > 0 && files > 0;
    return isLimited && (blocks - bfree) * bsize <= small.bytes && files - ffree <= small.files;
  } catch {
    return false;
  }
}

/** The visible one of several mounts at the same place. */
function topmost(all: readonly MountInfo[], target: string): MountInfo | undefined {
  return all.findLast((mount) => mount.target === target);
}

/** Whether the path to the mount crosses only file systems that no server or process can block. */
export function isOnLocal(all: readonly MountInfo[], mount: MountInfo): boolean {
  const byId = new Map(all.map((one) => [one.id, one]));
  const seen = new Set<MountInfo>();
  for (let at = byId.get(mount.parentId); at !== undefined && !seen.has(at); at = byId.get(at.parentId)) {
    if (isRemote(at.fileSystem)) return false;
    seen.add(at);
  }
  return true;
}

/** The options of the mount and its file system in one list, as findmnt(8) shows them. */
function mountPoint({
  target,
  source,
  fileSystem,
  options,
  superOptions,
  isShared,
  device,
  root,
}: MountInfo): MountPoint {
  const shared = superOptions.filter((option) => option !== "" && !options.includes(option));
  const all = [...options, ...shared.filter((option) => !isAccess(option))];
  return { target, source, fileSystem, options: all, isShared, device, root };
}

/** The mount's own flag decides about read-only; the file system's may differ. */
function isAccess(option: string): boolean {
  return option === "rw" || option === "ro";
}

function requireAbsolute(path: string): void {
  if (!path.startsWith("/") || path.includes("\0")) {
    throw new Error(`mount target ${JSON.stringify(path)} is not absolute`);
  }
}
