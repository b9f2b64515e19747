import { dirname } from "node:path/posix";
import { errorMessage, PodwrightError } from "../../base/errors.ts";
import { version } from "../../base/version.ts";
import { FileError } from "../../ports/files.ts";
import type { MountPoint } from "../../ports/mounts.ts";
import { requireStateFormat } from "../state-format.ts";
import { failed, oneLine, passed, warned } from "./check.ts";
import type { Check, CheckContext } from "./check.ts";
import { notInPath } from "./programs.ts";

const MIB = 1024 * 1024;
/** Below this not even small images unpack. */
const MIN_FREE_BYTES = 200 * MIB;
/** Below this an image of usual size may not fit. */
const COMFORTABLE_FREE_BYTES = 2048 * MIB;

const COMMAND_TIMEOUT_MS = 30_000;

/** Creates the state directory, unless it only looks, and looks at the file system that it is on. */
export async function checkStateDirectory({ files, mounts, layout, onlyLooks }: CheckContext): Promise<Check> {
  const name = "state directory";
  const path = layout.stateDirectory;
  const elsewhere = "use another --state-dir";
  let place: string;
  try {
    // Not 0700: with user namespaces, containers reach their root file systems through it as other users.
    if (onlyLooks !== true) await files.makeDirectory(path, 0o711);
    place = await existingDirectory(files, path);
  } catch (error) {
    return failed(name, `cannot create ${path}: ${oneLine(errorMessage(error))}`, elsewhere);
  }
  const unread = await unreadableState(files, path);
  if (unread !== undefined) return failed(name, unread.message, unread.remedy ?? elsewhere);
  const mount = holdingMount(await mounts.list(), await files.realPath(place));
  const has = (option: string): boolean => mount?.options.includes(option) === true;
  const forbidding = ["ro", "noexec", "nodev"].filter(has);
  const absent = place === path ? "" : " does not exist yet, and would be created";
  if (mount !== undefined && forbidding.length > 0) {
    const remedy = `remount ${mount.target} without ${forbidding.join(", ")}, or ${elsewhere}`;
    return failed(name, `${path}${absent || " is"} on ${mount.target}, mounted with ${forbidding.join(", ")}`, remedy);
  }
  if (mount !== undefined && has("nosuid")) {
    const where = `${path}${absent || " is"} on ${mount.target}`;
    const detail = `${where}, mounted with nosuid: the set-user-id bit has no effect in containers`;
    return warned(name, detail, `remount ${mount.target} without nosuid`);
  }
  return passed(name, mount === undefined ? `${path}${absent}` : `${path}${absent} on ${mount.fileSystem}`);
}

/** A directory itself, or its nearest existing parent, where it would be created. */
async function existingDirectory(files: CheckContext["files"], directory: string): Promise<string> {
  for (let path = directory; ; path = dirname(path)) {
    const found = await files.stat(path);
    if (found?.type === "file" || found?.type === "other") throw new Error(`${path} is not a directory`);
    if (found?.type === "symlink") await requireTarget(files, path);
    if (found !== undefined || path === "/") return path;
  }
}

/** A directory cannot be created at a link that leads nowhere. */
async function requireTarget(files: CheckContext["files"], link: string): Promise<void> {
  try {
    await files.realPath(link);
  } catch (error) {
    if (!(error instanceof FileError) || error.code !== "ENOENT") throw error;
    throw new Error(`${link} is a symbolic link to ${await files.readLink(link)}, which does not exist`, {
      cause: error,
    });
  }
}

/** Why this podwright does not touch the state: it is of a newer one, or its mark is damaged. */
async function unreadableState(files: CheckContext["files"], path: string): Promise<PodwrightError | undefined> {
  try {
    await requireStateFormat(files, path, version);
    return undefined;
  } catch (error) {
    if (error instanceof PodwrightError) return error;
    throw error;
  }
}

/** The mount that a path is on: the last one of those with the longest target above the path. */
export function holdingMount(mounts: readonly MountPoint[], path: string): MountPoint | undefined {
  return mounts
    .filter(({ target }) => target === "/" || path === target || path.startsWith(`${target}/`))
    .reduce<MountPoint | undefined>(
      (best, mount) => (best === undefined || mount.target.length >= best.target.length ? mount : best),
      undefined,
    );
}

/** Whether volumes of the root file system can have mountPropagation. */
export async function checkPropagation({ mounts }: Pick<CheckContext, "mounts">): Promise<Check> {
  const name = "mount propagation";
  const root = holdingMount(await mounts.list(), "/");
  if (root?.isShared !== false) return passed(name, "/ is a shared mount");
  const detail = "/ is a private mount: containers whose volumeMounts have a mountPropagation cannot be created";
  return warned(name, detail, "run mount --make-rshared / if you have such pods");
}

/** Mounts an overlay in the state directory, writes through it and takes it away again. */
export async function checkOverlay(context: CheckContext): Promise<Check> {
  const { files, mounts, layout, processes } = context;
  const name = "overlayfs";
  const place = layout.stateDirectory;
  if ((await files.stat(place)) === undefined) return await untriedOverlay(context, name);
  await sweepLeftovers(context, place);
  const base = `${place}/${TRIAL_PREFIX}${processes.ownPid}`;
  const [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map((part) => `${base}/${part}`);
  if (lower === undefined || upper === undefined || work === undefined || merged === undefined) throw new Error(name);
  try {
    for (const directory of [lower, upper, work, merged]) await files.makeDirectory(directory, 0o700);
    await files.write(`${lower}/file`, "lower", 0o600);
    const options = [`lowerdir=${lower}`, `upperdir=${upper}`, `workdir=${work}`];
    await mounts.mount({ target: merged, source: "overlay", fileSystem: "overlay", options });
    await files.write(`${merged}/file`, "upper", 0o600);
    return passed(name, "works in the state directory");
  } catch (error) {
    const absent = await notInPath(context, error);
    if (absent !== undefined) return absent;
    return failed(name, `does not work in ${place}: ${oneLine(errorMessage(error))}`, otherFileSystem);
  } finally {
    await removeTrial(context, base);
  }
}

const otherFileSystem = "use a --state-dir on ext4, xfs or btrfs (inside a container: on a volume)";
/** File systems that the upper directory of an overlay can be on. */
const suitable = new Set(["ext4", "xfs", "btrfs", "tmpfs"]);
/** Those that Linux refuses for it: they are of other machines, ignore case, or are overlays themselves. */
const unsuitable = new Set(["overlay", "nfs", "nfs4", "vfat", "exfat"]);

/**
 * What is known of a state directory that does not exist. Nothing is tried where it would be created: others may write
 * there, as in /tmp, and their links could lead the mount anywhere.
 */
async function untriedOverlay({ files, mounts, layout }: CheckContext, name: string): Promise<Check> {
  const place = await existingDirectory(files, layout.stateDirectory);
  const { fileSystem } = holdingMount(await mounts.list(), await files.realPath(place)) ?? {};
  const untried = `not tried, because ${layout.stateDirectory} does not exist yet`;
  if (fileSystem === undefined) return passed(name, untried);
  if (suitable.has(fileSystem)) return passed(name, `should work on ${fileSystem}; ${untried}`);
  if (unsuitable.has(fileSystem)) return failed(name, `does not work on ${fileSystem}`, otherFileSystem);
  return warned(name, `may not work on ${fileSystem}; ${untried}`, `if it fails, ${otherFileSystem}`);
}

const TRIAL_PREFIX = "podwright-overlay-trial-";

/** Takes away what trials of ended processes left. */
async function sweepLeftovers(context: CheckContext, place: string): Promise<void> {
  const { files, processes } = context;
  for (const { name } of await files.list(place)) {
    const pid = name.startsWith(TRIAL_PREFIX) ? Number(name.slice(TRIAL_PREFIX.length)) : Number.NaN;
    if (Number.isSafeInteger(pid) && pid > 0 && (pid === processes.ownPid || !processes.isAlive(pid))) {
      await removeTrial(context, `${place}/${name}`);
    }
  }
}

/** A trial that can't be removed is no reason to refuse to work: the next one sweeps it. */
async function removeTrial({ files, mounts }: CheckContext, base: string): Promise<void> {
  try {
    await mounts.unmount(`${base}/merged`);
    await files.removeTree(base);
  } catch {}
}

/**
 * Looks at the free space of the state directory's file system. Too little prevents the first start only: over stored
 * pods it takes an engine to free some, by evictions, garbage collection and stops.
 */
export async function checkDisk(context: CheckContext): Promise<Check> {
  const { files, processes, layout, signal } = context;
  const name = "disk space";
  const result = await processes
    .run("df", ["-Pk", await existingDirectory(files, layout.stateDirectory)], {
      timeoutMs: COMMAND_TIMEOUT_MS,
      environment: { LC_ALL: "C" },
      ...(signal && { signal }),
    })
    .catch((error: unknown) => ({ stdout: "", error }));
  const free = parseFreeBytes(result.stdout);
  if (free === undefined) {
    const absent = "error" in result ? await notInPath(context, result.error) : undefined;
    if (absent !== undefined) return warned(name, `free space is unknown: ${absent.detail}`, absent.remedy ?? "");
    return warned(
      name,
      "free space is unknown: df(1) failed",
      `make sure that ${layout.stateDirectory} has some GiB free`,
    );
  }
  const detail = `${formatSize(free)} free for ${layout.stateDirectory}`;
  if (free < MIN_FREE_BYTES) {
    const remedy = `free at least ${formatSize(MIN_FREE_BYTES)}`;
    if (!(await hasStoredPods(context))) return failed(name, detail, remedy);
    return warned(name, detail, `${remedy}, e.g. with 'podwright gc' or by stopping pods: new images may not fit`);
  }
  if (free < COMFORTABLE_FREE_BYTES) return warned(name, detail, "free some space before pulling large images");
  return passed(name, detail);
}

/** Whether an earlier engine left pods, which the next one takes over. */
async function hasStoredPods({ files, layout }: CheckContext): Promise<boolean> {
  return (await files.list(layout.manifests)).some(({ name }) => name.startsWith("pod_"));
}

/** The fourth column of `df -P -k`: free KiB for ordinary users. */
function parseFreeBytes(output: string): number | undefined {
  const kibibytes = /\s\d+\s+\d+\s+(\d+)\s+\d+%\s/.exec(output)?.[1];
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024;
}

function formatSize(bytes: number): string {
  return bytes >= 1024 * MIB ? `${(bytes / (1024 * MIB)).toFixed(1)} GiB` : `${Math.floor(bytes / MIB)} MiB`;
}
