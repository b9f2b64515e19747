import { openCLibrary } from "../processes/c-library.ts";

/**
 * Mounts and unmounts memory file systems by the kernel's own calls, as far as Node.js can make such (`node:ffi`, from
 * version 26.1 on). Each pod of a cluster has at least one, for its token. A program started for it costs a fork of this
 * process, in which everything else stands still for 4 to 7 ms; the call itself takes 0.05 ms, and no disk or network can
 * hold it up. Other file systems can: mount(8) and umount(8) stay for those. No argument may have a NUL in it.
 */
export interface TmpfsCalls {
  /** @returns false when the kernel refused: mount(8) finds the words for it */
  mount(source: string, target: string, options: string): boolean;
  /**
   * Follows no symbolic link at the end of the path. Frees what is in the file system before it returns: only for those
   * in which there is little.
   * @returns false when the kernel refused
   */
  unmount(target: string): boolean;
}

/** UMOUNT_NOFOLLOW of umount2(2). */
const noFollow = 8;
const noFlags = 0n;

/**
 * @param modules where Node.js gives its own modules
 * @returns undefined when there are no such calls: Node.js is older or built without them, or the C library another one
 */
export function tmpfsCalls(modules?: (name: string) => unknown): TmpfsCalls | undefined {
  try {
    const library = openCLibrary(modules);
    const mount = library("mount", ["string", "string", "string", "uint64", "string"], "int32");
    const unmount = library("umount2", ["string", "int32"], "int32");
    return {
      mount: (source, target, options) => mount(source, target, "tmpfs", noFlags, options) === 0,
      unmount: (target) => unmount(target, noFollow) === 0,
    };
  } catch {
    return undefined;
  }
}

/** Options that the file system takes itself; others are flags of the call, or what mount(8) alone understands. */
export function areOfTmpfs(options: readonly string[]): boolean {
  return options.every((option) => /^(?:size=\d+|noswap)$/.test(option));
}
