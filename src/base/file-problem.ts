import { ExitCode, errorMessage, PodwrightError } from "./errors.ts";
import { FileError } from "../ports/files.ts";

/** What was tried, by the system call. */
const attempts: Readonly<Record<string, string>> = {
  scandir: "list",
  opendir: "list",
  open: "open",
  read: "read",
  write: "write",
  fsync: "write",
  mkdir: "create",
  symlink: "create",
  link: "create",
  unlink: "remove",
  rmdir: "remove",
  rm: "remove",
  rename: "replace",
  chmod: "change",
  fchmod: "change",
  chown: "change",
  stat: "look at",
  lstat: "look at",
  readlink: "look at",
  realpath: "look at",
};

const remedies: Readonly<Record<string, string>> = {
  EROFS: "remount its file system writable",
  ENOSPC: "free some space on its file system",
  EDQUOT: "free some space, or raise the quota",
  EMFILE: "raise the limit of open files (ulimit -n)",
  ENFILE: "raise the limit of open files (fs.file-max)",
  EIO: "check the disk: the kernel's log says more (dmesg)",
  EBUSY: "unmount what is mounted there",
};

/**
 * A file system error for a person: what could not be done, where, and what to do about it. The cause is in the machine, not in
 * podwright. Undefined for any other error.
 */
export function fileProblem(error: unknown, isRoot: boolean): PodwrightError | undefined {
  const found = parts(error);
  if (found === undefined) return undefined;
  const { code, path, call } = found;
  const attempt = code === "EROFS" && call === "open" ? "write" : (attempts[call] ?? "use");
  return new PodwrightError(ExitCode.environment, `cannot ${attempt} ${path}: ${reasonOf(error)}`, {
    cause: error,
    remedy: remedyOf(code, isRoot),
  });
}

function parts(error: unknown): { readonly code: string; readonly path: string; readonly call: string } | undefined {
  if (error instanceof FileError) {
    return { code: error.code, path: error.path, call: callOf(error.cause) ?? callOf(error) ?? "" };
  }
  if (!(error instanceof Error)) return undefined;
  const { code, path } = error as NodeJS.ErrnoException;
  const call = callOf(error);
  // Of other calls the path is not a file's, e.g. a program's name.
  if (code === undefined || path === undefined || call === undefined || attempts[call] === undefined) return undefined;
  return { code, path, call };
}

function callOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).syscall : undefined;
}

/** Without the code and the path: `EACCES: permission denied, open '/a'`. */
function reasonOf(error: unknown): string {
  return errorMessage(error)
    .replace(/^E[A-Z0-9]+: /u, "")
    .replace(/, \w+ '.*$/su, "")
    .replace(/: '.*'$/su, "");
}

function remedyOf(code: string, isRoot: boolean): string {
  if (code === "EACCES" || code === "EPERM") {
    return isRoot ? "check its permissions and attributes (lsattr), and those above it" : "run this command as root";
  }
  return remedies[code] ?? "check the path, and what is there";
}
