import type { Clock } from "../ports/clock.ts";
import type { FileInfo, Files } from "../ports/files.ts";
import type { Locks } from "../ports/locks.ts";
import type { Logger } from "../ports/log.ts";

const pollMs = 1000;
const maxTableBytes = 4 * 1024 * 1024;

export interface LockFileDependencies {
  readonly clock: Clock;
  readonly files: Pick<Files, "read" | "stat">;
  readonly log: Logger;
}

/**
 * `--lock-file`: waits until no other kubelet holds the lock (flock(2), as upstream), and takes it. Rejects with the
 * signal's reason.
 */
export async function takeLockFile(
  { clock, locks, log }: Pick<LockFileDependencies, "clock" | "log"> & { readonly locks: Locks },
  path: string,
  signal: AbortSignal,
): Promise<Disposable> {
  log.info("acquiring file lock", { path });
  for (let isReported = false; ; isReported = true) {
    const lock = await locks.tryLock(path);
    if (lock !== undefined) return lock;
    if (!isReported) log.warn("another process holds the lock file; waiting for it", { path });
    await clock.sleep("the lock file", pollMs, signal);
  }
}

/**
 * `--exit-on-lock-contention`: aborts when another process waits for the lock, or with `signal`. Upstream notices
 * through inotify that the file is opened, which Node.js cannot; /proc/locks shows the waiters.
 */
export function lockFileContention(deps: LockFileDependencies, path: string, signal: AbortSignal): AbortSignal {
  const contended = new AbortController();
  const look = async (): Promise<void> => {
    while (!signal.aborted) {
      if (await isContended(deps, path)) {
        contended.abort(new Error(`another process waits for ${path}`));
        return;
      }
      await deps.clock.sleep("contention for the lock file", pollMs, signal).catch(() => {});
    }
    contended.abort(signal.reason);
  };
  void look();
  return contended.signal;
}

async function isContended({ files, log }: LockFileDependencies, path: string): Promise<boolean> {
  try {
    const [file, table] = await Promise.all([files.stat(path), files.read("/proc/locks", maxTableBytes)]);
    return file === undefined || hasWaiter(new TextDecoder().decode(table), file);
  } catch (error) {
    log.debug("cannot watch the lock file for contention", { path, error: String(error) });
    return false;
  }
}

/**
 * Whether a process waits for a lock of the file (proc_locks(5): `1: -> FLOCK ADVISORY WRITE 42 fe:00:1234 0 EOF`). On
 * file systems whose files have another device than their mount (btrfs) waiters are never seen. Pure.
 */
export function hasWaiter(table: string, { device, inode }: Pick<FileInfo, "device" | "inode">): boolean {
  const hex = (part: number): string => part.toString(16).padStart(2, "0");
  const major = Math.floor(device / 256) % 4096;
  const minor = (device % 256) + Math.floor(device / 2 ** 20) * 256;
  const place = `${hex(major)}:${hex(minor)}:${inode}`;
  return table.split("\n").some((line) => {
    const fields = line.trim().split(/\s+/u);
    return fields[1] === "->" && fields[2] === "FLOCK" && fields[6] === place;
  });
}
