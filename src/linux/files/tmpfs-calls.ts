import { openCLibrary } from "../processes/c-library.ts";

/**
 * Mounts and unmounts memory file systems by system calls, where Node.js can make them (`node:ffi`, 26.1 or newer).
 * Each pod of a cluster has at least one, for its token. Starting a program forks this process, which blocks it for 4
 * to 7 ms; the system call takes 0.05 ms, and no disk or network can block it. Other file systems can block, so
 * mount(8) and umount(8) stay for those. Arguments must not contain NUL.
 */
export interface TmpfsCalls {
  /** @returns false on failure: mount(8) then provides the message */
  mount(source: string, target: string, options: string): boolean;
  /**
   * Does not follow a final symbolic link. Frees the contents before it returns, so it is only for small file systems.
   * @returns false on failure
   */
  unmount(target: string): boolean;
}

/** UMOUNT_NOFOLLOW of umount2(2). */
const noFollow = 8;
const noFlags = 0n;

/**
 * @param modules access to Node.js' built-in modules
 * @returns undefined when unavailable: Node.js is older or built without `node:ffi`, or the C library is another one
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

/** Options of the file system itself; others are mount flags, or known only to mount(8). */
export function areOfTmpfs(options: readonly string[]): boolean {
  return options.every((option) => /^(?:size=\d+|noswap)$/.test(option));
}
