import type { Files } from "../ports/files.ts";
import type { Hashing } from "../ports/hashing.ts";
import type { Locks } from "../ports/locks.ts";
import type { ProcessInfo, Processes } from "../ports/processes.ts";
import { HeldError } from "./hand-over.ts";
import { LOCK_DIRECTORY } from "./layout.ts";
import { runtimeUsers } from "./runtime-users.ts";

export interface OwnershipDeps {
  readonly files: Files;
  readonly hashing: Hashing;
  readonly locks: Locks;
  readonly processes: Processes;
}

/**
 * Makes this process the one owner of a runtime: two node agents on one runtime would take each other's pods for
 * orphans and kill them. Dispose of the result to give the runtime up; the end of the process does it too.
 * @param endpoint `unix://…`; its socket need not exist yet
 * @throws HeldError when another podwright has it or a live kubelet uses it
 */
export async function claimRuntime(deps: OwnershipDeps, endpoint: string): Promise<Disposable> {
  const { files, hashing, locks, processes } = deps;
  const socket = await realSocketPath(files, endpoint);
  await files.makeDirectory(LOCK_DIRECTORY, 0o755);
  const lockPath = runtimeLockPath(hashing, socket);
  const lock = await locks.tryOwnLock(lockPath);
  if (lock === undefined) {
    const pid = await locks.holder(lockPath);
    const holder = (await processes.list()).find((process) => process.pid === pid);
    throw refusal(endpoint, "another podwright", holder, "stop it first, or use another runtime or state directory");
  }
  try {
    for (const user of await runtimeUsers(files, await processes.list())) {
      if (user.process.pid === processes.ownPid) continue;
      if (!(await isSameSocket(files, socket, user.process.pid, user.endpoint))) continue;
      throw refusal(
        endpoint,
        "a live node agent",
        user.process,
        "stop it first, or use another runtime (--runtime-endpoint; 'podwright run' without it starts its own)",
      );
    }
  } catch (error) {
    lock[Symbol.dispose]();
    throw error;
  }
  return lock;
}

/** Where the lock of the runtime behind that socket is. @param socket its real path */
export function runtimeLockPath(hashing: Hashing, socket: string): string {
  return `${LOCK_DIRECTORY}/runtime-${hashing.sha256(socket).slice(0, 16)}`;
}

function refusal(endpoint: string, who: string, process: ProcessInfo | undefined, remedy: string): HeldError {
  const which = process === undefined ? "" : ` (pid ${process.pid}: ${shortCommandLine(process)})`;
  return new HeldError(
    `the container runtime ${endpoint} is used by ${who}${which}; two node agents would remove each other's pods`,
    process?.pid,
    remedy,
  );
}

/** Enough of the command line to know the process by. */
function shortCommandLine({ name, arguments: words }: ProcessInfo): string {
  const text = words.length === 0 ? name : words.join(" ");
  return text.length > 160 ? `${text.slice(0, 159)}…` : text;
}

/**
 * Whether another process means our socket with its endpoint. Seen through that process's root, equal files are the
 * same socket; if that cannot be determined (gone, not permitted), equal paths count as the same.
 */
async function isSameSocket(files: Files, ownSocket: string, pid: number, endpoint: string): Promise<boolean> {
  const path = endpoint.replace(/^unix:\/\//, "");
  const [own, theirs] = await Promise.all([
    files.stat(ownSocket).catch(() => undefined),
    files.stat(`/proc/${pid}/root${path}`).catch(() => undefined),
  ]);
  if (own !== undefined && theirs !== undefined && theirs.type !== "symlink") {
    return own.inode === theirs.inode && own.device === theirs.device;
  }
  return (await realSocketPath(files, endpoint)) === ownSocket;
}

/** The socket's path without symbolic links; of one that does not exist yet, as far as its parents do. */
async function realSocketPath(files: Files, endpoint: string): Promise<string> {
  let existing = endpoint.replace(/^unix:\/\//, "").replaceAll(/\/+/g, "/");
  let rest = "";
  while (existing !== "" && existing !== "/") {
    const real = await files.realPath(existing).catch(() => undefined);
    if (real !== undefined) return real === "/" ? rest : real + rest;
    const slash = existing.lastIndexOf("/");
    rest = existing.slice(slash) + rest;
    existing = existing.slice(0, slash);
  }
  return rest;
}
