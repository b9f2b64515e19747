import { dirname, join, basename } from "node:path/posix";
import { errorMessage, ExitCode, PodwrightError } from "../base/errors.ts";
import { shortened } from "../base/shortened.ts";
import { printable } from "../journal/text.ts";
import { FileError, type Files } from "../ports/files.ts";
import { copyableDirectory } from "./copy-source.ts";
import type { MachineContext } from "./machine-context.ts";

type Machine = Pick<MachineContext, "files" | "processes">;

/** There is no limit to the size of a volume. */
const copyMs = 7 * 24 * 3_600_000;
const shortMs = 30_000;

/**
 * Copies the content of a directory, with owners, modes, times, links and extended attributes: to a tar archive if the
 * destination's name is that of one, else to a new or empty directory. A new destination appears when it is complete;
 * an incomplete copy leaves nothing.
 * @param isOwn whether podwright made the source for its claim
 * @throws PodwrightError if the source is no directory, the destination is not empty or is in the source, or the copy
 * fails
 */
export async function copyOut(
  machine: Machine,
  source: string,
  destination: string,
  signal: AbortSignal,
  isOwn = false,
): Promise<void> {
  try {
    await copyDirectory(machine, await copyableDirectory(machine, source, isOwn), destination, signal);
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    const isTooLong = error.code === "ENAMETOOLONG" && error.path !== source;
    // It may name the temporary path.
    const why = isTooLong ? "the destination is too long" : error.message;
    throw new PodwrightError(exitCodeFor(error.message), failure({ source, destination }, why), {
      cause: error,
      ...(isTooLong && { remedy: "choose a shorter destination" }),
    });
  }
}

async function copyDirectory(
  { files, processes }: Machine,
  source: string,
  destination: string,
  signal: AbortSignal,
): Promise<void> {
  const isArchive = /\.(?:tar|tar\.gz|tgz)$/u.test(destination);
  const isThere = await isUsable(files, destination, isArchive);
  if (!isArchive && !isThere) refuseArchiveName(destination);
  await requireParent(files, destination);
  await refuseInside(files, source, destination);
  // An empty directory may be the root of another disk, whose parent may not have enough space.
  const target = isThere ? destination : await partialName(files, destination);
  const before = isThere ? await ownership(processes, destination) : undefined;
  try {
    // What only root could read must not be everybody's in its copy.
    if (isArchive) await files.write(target, "", 0o600);
    else if (!isThere) await files.makeDirectory(target, 0o700);
    const command = isArchive ? archive(source, target, destination) : copy(source, target);
    await run(processes, command, { source, target, destination }, signal);
    // The claim's own directory is everybody's, below one that is root's.
    if (before !== undefined) await giveBack(files, destination, before);
    else if (!isArchive) await files.chmod(target, 0o700);
    if (!isThere) await files.rename(target, destination);
  } catch (error) {
    await (before === undefined ? undo(files, target) : empty({ files, processes }, destination, before));
    signal.throwIfAborted();
    throw error;
  }
}

/** Whether the destination is an empty directory; false: it does not exist. */
async function isUsable(files: Files, destination: string, isArchive: boolean): Promise<boolean> {
  const there = await files.stat(destination);
  if (there === undefined) return false;
  if (!isArchive && there.type === "directory" && (await files.list(destination)).length === 0) return true;
  const how = isArchive ? "" : " and is not an empty directory";
  throw new PodwrightError(ExitCode.badInput, `${destination} already exists${how}`, {
    remedy: "choose another destination; NAME.tar and NAME.tar.gz become archives",
  });
}

const ofArchives = /\.(?:tar|taz|t[bglx]z2?|tzst|gz|bz2|xz|zst|lz|lz4|lzma|lzo|Z|zip|7z|rar|cpio)$/iu;

/** A directory of such a name would be taken for an archive. */
function refuseArchiveName(destination: string): void {
  if (!ofArchives.test(destination)) return;
  throw new PodwrightError(ExitCode.badInput, `cannot copy to ${destination}: archives are .tar, .tar.gz or .tgz`, {
    remedy: "choose such a name; for another kind copy to a directory first",
  });
}

/** A misspelt directory would be made otherwise, e.g. in place of the mount point of a disk. */
async function requireParent(files: Files, destination: string): Promise<void> {
  let missing: string | undefined;
  for (let path = dirname(destination); (await files.stat(path)) === undefined; path = dirname(path)) missing = path;
  if (missing === undefined) return;
  throw new PodwrightError(ExitCode.badInput, `cannot copy to ${destination}: ${missing} does not exist`, {
    remedy: "create the directory first, or choose another destination",
  });
}

/** A copy of the data into itself would never end. */
async function refuseInside(files: Files, source: string, destination: string): Promise<void> {
  const data = await files.stat(source);
  const isIt = ({ inode, device } = { inode: 0, device: 0 }): boolean => {
    return data?.inode === inode && data.device === device;
  };
  const start = await files.realPath(
    (await files.stat(destination)) === undefined ? dirname(destination) : destination,
  );
  for (let path = start; ; path = dirname(path)) {
    if (isIt(await files.stat(path))) {
      throw new PodwrightError(ExitCode.badInput, `${destination} is in the claim's own data`, {
        remedy: `choose a destination outside of ${printable(source)}`,
      });
    }
    if (path === "/") return;
  }
}

/** The temporary path of the copy: next to its destination, so that a rename completes it. */
async function partialName(files: Files, destination: string): Promise<string> {
  const path = join(dirname(destination), `.${basename(destination)}.podwright-partial`);
  if ((await files.stat(path)) === undefined) return path;
  throw new PodwrightError(ExitCode.failed, `${path} exists: another copy is in progress or was interrupted`, {
    remedy: "remove it if no copy is in progress",
  });
}

interface CopyPaths {
  readonly source: string;
  /** Where the copy is made. */
  readonly target: string;
  /** Where it is when it is complete. */
  readonly destination: string;
}

interface Command {
  readonly program: "cp" | "tar";
  readonly arguments: readonly string[];
  /** Exit codes of success. */
  readonly good: readonly number[];
  /** Whether a line of standard error is no failure; with others it is not printed. */
  readonly isHarmless: (line: string) => boolean;
}

function copy(source: string, target: string): Command {
  // Programs remove their temporary files at any time; anything else would be missing in the copy.
  const isHarmless = (line: string): boolean =>
    goneFile.test(line) && line.includes(` '${source}/`) && !line.includes(` '${source}/.'`);
  return { program: "cp", arguments: ["-a", "--reflink=auto", "--", `${source}/.`, target], good: [0], isHarmless };
}

/** What cp(1) says of a file that was removed after its directory was read. */
const goneFile = /^cp: cannot (?:stat|access|open|read symbolic link) '.+: No such file or directory$/u;
/** What it says if another file has meanwhile got a file's name. */
const replacedFile = "replaced while being copied";

function archive(source: string, target: string, destination: string): Command {
  const create = destination.endsWith(".tar") ? "-cf" : "-czf";
  // Holes of sparse files would fill the disk.
  const words = ["--numeric-owner", "--xattrs", "--sparse", create, target, "-C", source, "."];
  // 1: a file changed while it was read, or was removed.
  return { program: "tar", arguments: words, good: [0, 1], isHarmless: () => false };
}

async function run(
  processes: Machine["processes"],
  { program, arguments: words, good, isHarmless }: Command,
  paths: CopyPaths,
  signal: AbortSignal,
): Promise<void> {
  const options = { timeoutMs: copyMs, signal, environment: { LC_ALL: "C" } };
  const result = await processes.run(program, words, options).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new PodwrightError(ExitCode.environment, `cannot run ${program}`, {
      cause: error,
      remedy: `install ${program}`,
    });
  });
  const { exitCode } = result;
  if (exitCode !== undefined && good.includes(exitCode)) return;
  const lines = result.stderr.trim().split("\n");
  const [problem] = lines.filter((line) => !isHarmless(line));
  if (exitCode === 1 && problem === undefined) return;
  const why = problem || `${program} ended by ${result.signal ?? "itself"}`;
  if (why.endsWith(tooLong)) throw pathTooLong(paths, why, program);
  throw new PodwrightError(exitCodeFor(why), failure(paths, why), {
    ...(why.endsWith(replacedFile) && {
      remedy: "stop the pods that write to it, or copy to an archive (NAME.tar.gz)",
    }),
  });
}

/** What the programs say of a path that Linux takes no call for, or of a name that the destination cannot have. */
const tooLong = ": File name too long";
/** Characters of a long path that are shown of its beginning. */
const shownPath = 200;

/** A pod reaches the end of such a path step by step; programs name it as a whole. */
function pathTooLong(paths: CopyPaths, why: string, program: Command["program"]): PodwrightError {
  const { target, destination } = paths;
  const [, named = why] =
    /^(?:cp|tar): (?:(?:cannot|failed|preserving) [a-z ]+ )?(.+?)(?:: Cannot [a-z ]+)?: File name too long$/u.exec(
      why,
    ) ?? [];
  const isInCopy = named.startsWith(`'${target}/`);
  // The temporary path is removed.
  const path = isInCopy ? named.replace(target, () => destination) : named;
  const shorten = isInCopy
    ? "choose a shorter destination"
    : "rename or move what is at that path, so that it gets shorter";
  const instead = "copy to an archive (NAME.tar.gz), which has everything, although tar cannot unpack such paths";
  return new PodwrightError(ExitCode.failed, failure(paths, `too long: ${shortened(path, shownPath, 50)}`), {
    remedy: program === "cp" ? `${shorten}; or ${instead}` : shorten,
  });
}

/** The source and the names below it are others', and may have any characters. */
function failure({ source, destination }: Omit<CopyPaths, "target">, why: string): string {
  return printable(`cannot copy ${source} to ${destination}: ${why}`);
}

const ofMachine = /no space left on device|read-only file system|disk quota exceeded|i(?:nput)?\/o(?:utput)? error/iu;

/** A full or broken disk is the machine's problem. */
function exitCodeFor(problem: string): ExitCode {
  return ofMachine.test(problem) ? ExitCode.environment : ExitCode.failed;
}

/** Removes what was created for the copy, if anything was. */
async function undo(files: Files, made: string): Promise<void> {
  try {
    if ((await files.stat(made)) !== undefined) await files.removeTree(made);
  } catch (error) {
    throw notUndone(made, error);
  }
}

interface Ownership {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

async function ownership(processes: Machine["processes"], directory: string): Promise<Ownership> {
  const words = ["--printf", "%u %g %a", "--", directory];
  const { stdout } = await processes.run("stat", words, { timeoutMs: shortMs });
  const [uid = 0, gid = 0] = stdout.split(" ").map(Number);
  return { uid, gid, mode: Number.parseInt(stdout.split(" ")[2] ?? "755", 8) };
}

/** Makes the directory that was copied into what it was. Names need not be UTF-8, and it may be the root of a disk. */
async function empty({ files, processes }: Machine, directory: string, before: Ownership): Promise<void> {
  try {
    const words = [directory, "-xdev", "-mindepth", "1", "-delete"];
    const { exitCode, stderr } = await processes.run("find", words, { timeoutMs: copyMs });
    if (exitCode !== 0) throw new Error(stderr.trim().split("\n")[0]);
    await giveBack(files, directory, before);
  } catch (error) {
    throw notUndone(directory, error);
  }
}

async function giveBack(files: Files, directory: string, { uid, gid, mode }: Ownership): Promise<void> {
  await files.chown(directory, uid, gid);
  await files.chmod(directory, mode);
}

function notUndone(path: string, error: unknown): PodwrightError {
  return new PodwrightError(ExitCode.failed, `the copy failed, and what it made in ${path} cannot be removed`, {
    cause: error,
    remedy: errorMessage(error),
  });
}
