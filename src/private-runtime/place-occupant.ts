import { ExitCode, PodwrightError } from "../base/errors.ts";
import { shellWord } from "../base/shell-word.ts";
import type { MountPoint } from "../ports/mounts.ts";

/**
 * Why a directory of the kubelet's usual place cannot be used. Volumes may be mounted in it, so nothing of its content is
 * to be removed before they are unmounted: the data of users would go with it. Pure.
 * @param path the directory, without links
 * @param name `pods` or `plugins`
 * @param mounts every mount, in mount order
 */
export function occupied(path: string, name: string, mounts: readonly MountPoint[]): PodwrightError {
  const own = mounts.findLast(({ target }) => target === path);
  if (own !== undefined) {
    const shown = shownBy(own, mounts);
    const message = `${path} shows ${shown ?? "another directory"}, where volumes may be mounted`;
    const ending = `/kubelet/${name}`;
    const state = shown?.endsWith(ending) === true ? shown.slice(0, -ending.length) : undefined;
    const remedy =
      state === undefined
        ? "unmount it once nothing uses it; remove nothing in it"
        : `${endOfEngine(state)}; remove nothing in it`;
    return new PodwrightError(ExitCode.environment, message, { remedy });
  }
  const volumes = mounts.filter(({ target }) => target.startsWith(`${path}/`));
  const message = `${path} is not empty: it has files of a kubelet`;
  if (volumes.length === 0) {
    return new PodwrightError(ExitCode.environment, message, {
      remedy: "remove what that kubelet has left, or run the driver elsewhere",
    });
  }
  return new PodwrightError(ExitCode.environment, `${message}, and volumes are mounted in it`, {
    remedy: `unmount them ('findmnt -R ${shellWord(path)}') before you remove anything, or run the driver elsewhere`,
  });
}

/** How the directories of an engine go from a kubelet's usual place. @param state its state directory */
export function endOfEngine(state: string): string {
  const at = `--state-dir ${shellWord(state)}`;
  return `stop the pods of the engine that it belongs to ('podwright ps ${at}'; 'podwright run ${at}' starts one that does not run)`;
}

/** Whether a directory is bind-mounted on itself. Pure. @param path without links */
export function isOfItself(path: string, mounts: readonly MountPoint[]): boolean {
  const own = mounts.findLast(({ target }) => target === path);
  return own !== undefined && shownPaths(own, mounts).includes(path);
}

/** The directory that is bind-mounted, at another mount of its file system; undefined: it has none. */
function shownBy(own: MountPoint, mounts: readonly MountPoint[]): string | undefined {
  return shownPaths(own, mounts)[0];
}

/** Where the directory of a bind mount is found otherwise, at each other mount of its file system. Pure. */
export function shownPaths(
  { device, root = "/", target: own }: MountPoint,
  mounts: readonly MountPoint[],
): readonly string[] {
  if (device === undefined) return [];
  return mounts.flatMap((other) => {
    const top = other.root ?? "/";
    const isAbove = top === "/" || root === top || root.startsWith(`${top}/`);
    if (other.target === own || other.device !== device || !isAbove) return [];
    const rest = top === "/" ? root : root.slice(top.length);
    return [`${other.target === "/" ? "" : other.target}${rest}`];
  });
}
